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
// comparison with all names of the schema, and with no more faults of one kind than
// callers are told.
func validationRules() *rules.Rules {
	all := rules.NewRules()
	for name, rule := range suggestingRules().GetInner() {
		silent := core.Rule{Name: name, RuleFunc: rule}
		switch name {
		case rules.FieldsOnCorrectTypeRule.Name:
			silent = rules.FieldsOnCorrectTypeRuleWithoutSuggestions
		case rules.ScalarLeafsRule.Name:
			silent = rules.ScalarLeafsRuleWithoutSuggestions
		case rules.KnownArgumentNamesRule.Name:
			silent = rules.KnownArgumentNamesRuleWithoutSuggestions
		case rules.KnownTypeNamesRule.Name:
			silent = rules.KnownTypeNamesRuleWithoutSuggestions
		case rules.ValuesOfCorrectTypeRule.Name:
			silent = rules.ValuesOfCorrectTypeRuleWithoutSuggestions
		}
		all.AddRule(silent.Name, bounded(silent.RuleFunc))
	}
	return all
}

// bounded lets a rule find one fault more than callers are told of.
func bounded(rule core.RuleFunc) core.RuleFunc {
	return func(observers *core.Events, addError core.AddErrFunc) {
		found := 0
		rule(observers, func(options ...core.ErrorOption) {
			if found++; found <= maxRefusals+1 {
				addError(options...)
			}
		})
	}
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
