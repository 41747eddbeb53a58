// Sources that relay-compiler is to accept: pages of machines that a view loads and
// loads again, a mutation, and a subscription.
import { graphql } from "relay-runtime";

export const site = graphql`
  query MachinesSiteQuery($site: String!) {
    site(name: $site) {
      name
      ...Machines_site
    }
  }
`;

// Refetched by the site's id, through node.
export const machinesOfSite = graphql`
  fragment Machines_site on Site
  @refetchable(queryName: "MachinesSitePaginationQuery")
  @argumentDefinitions(count: { type: "Int", defaultValue: 50 }, cursor: { type: "Cursor" }, where: { type: "MachineWhereInput" }) {
    machines(first: $count, after: $cursor, where: $where) @connection(key: "Machines_machines", filters: ["where"]) {
      edges {
        node {
          id
          name
          state
        }
      }
      totalCount
    }
  }
`;

export const fleet = graphql`
  query MachinesFleetQuery {
    ...Machines_fleet
  }
`;

// Refetched from the root, backwards.
export const machinesOfFleet = graphql`
  fragment Machines_fleet on Query
  @refetchable(queryName: "MachinesFleetPaginationQuery")
  @argumentDefinitions(count: { type: "Int", defaultValue: 50 }, cursor: { type: "Cursor" }) {
    machines(last: $count, before: $cursor) @connection(key: "Machines_machines") {
      edges {
        node {
          id
          healthAlerts {
            nodes {
              id
              message
            }
          }
        }
      }
    }
  }
`;

export const raise = graphql`
  mutation MachinesRaiseMutation($input: RaiseHealthAlertInput!, $connections: [ID!]!) {
    raiseHealthAlert(input: $input) {
      healthAlert @appendNode(connections: $connections, edgeTypeName: "HealthAlertEdge") {
        id
        message
      }
    }
  }
`;

export const remove = graphql`
  mutation MachinesDeleteMutation($input: DeleteMachineInput!, $connections: [ID!]!) {
    deleteMachine(input: $input) {
      deletedMachineId @deleteRecord @deleteEdge(connections: $connections)
    }
  }
`;

export const events = graphql`
  subscription MachinesSubscription($id: ID!, $after: Cursor) {
    machine(id: $id, after: $after) {
      ... on MachineSnapshot {
        machine {
          id
          state
        }
        cursor
      }
      ... on MachineChange {
        now: machine {
          id
          state
        }
        cursor
      }
      ... on MachineEnd {
        transition {
          cause
        }
      }
    }
  }
`;
