package server

import (
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// suggestingRules are the rules of GraphQL and one of ours: gqlparser lets an Int
// literal beyond 32 bits pass, and any number literal for a custom scalar, over
// which it panics while executing when it fits no 64-bit type.
func suggestingRules() *rules.Rules {
	all := rules.NewDefaultRules()
	all.AddRule("NumbersInRange", numbersInRange)
	return all
}

// validationRules are the same without suggestions of names, each of which costs a
// comparison with all names of the schema. gqlgen itself takes the suggestions out of
// two rules.
func validationRules() *rules.Rules {
	all := suggestingRules()
	for suggests, silent := range map[string]core.Rule{
		rules.KnownArgumentNamesRule.Name:  rules.KnownArgumentNamesRuleWithoutSuggestions,
		rules.KnownTypeNamesRule.Name:      rules.KnownTypeNamesRuleWithoutSuggestions,
		rules.ValuesOfCorrectTypeRule.Name: rules.ValuesOfCorrectTypeRuleWithoutSuggestions,
	} {
		all.RemoveRule(suggests)
		all.AddRule(silent.Name, silent.RuleFunc)
	}
	return all
}

func numbersInRange(observers *core.Events, addError core.AddErrFunc) {
	observers.OnValue(func(_ *core.Walker, value *ast.Value) {
		if value.Kind != ast.IntValue && value.Kind != ast.FloatValue {
			return
		}
		_, err := value.Value(nil)
		switch {
		case value.Definition == nil || !value.Definition.BuiltIn:
		case value.Definition.Name == "Int" && value.Kind == ast.IntValue:
			_, err = strconv.ParseInt(value.Raw, 10, 32)
		default:
			return // of Float and ID the standard rules take care
		}
		if err != nil {
			addError(core.Message("The number %s is out of range", value.Raw), core.At(value.Position))
		}
	})
}
