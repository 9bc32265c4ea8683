/** Fields by name. The value is a list for an enumeration, the fields of an object, `#NAME` for a shared type, and otherwise `true`. */
export interface SourceFields {
  readonly [name: string]: boolean | string | readonly string[] | SourceFields
}

export interface FieldList {
  readonly kinds: Readonly<Record<string, SourceFields>>
  readonly types: Readonly<Record<string, SourceFields>>
}

export function compareFields(list?: FieldList): {
  /** Paths such as `AgentgatewayBackend.spec.aws`; `: VALUES` follows if only these values are missing. */
  readonly undecided: readonly string[]
}

export function generate(): Record<string, string>
