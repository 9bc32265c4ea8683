import type { FieldGroup, Rule } from './field.ts'

// CEL's reserved words, which are written `__name__` as field names (Kubernetes, "Validation rules").
const reserved = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
)

/** Returns `self.field` in CEL. */
function celField(field: string): string {
  return `self.${reserved.has(field) ? `__${field}__` : field}`
}

/** Creates a rule that counts how many of the fields are set. */
function groupRule(
  count: FieldGroup['count'],
  fields: readonly string[],
  cel: string,
  holds: (present: number) => boolean,
): Rule {
  return {
    message: `${count} of ${fields.join(', ')} ${count === 'at most one' ? 'may' : 'must'} be set`,
    cel,
    holds: (value: Readonly<Record<string, unknown>>) =>
      holds(fields.filter((field) => value[field] !== undefined).length),
    presence: true,
    group: { count, fields },
  }
}

/** Whether each field is set, as a list in CEL. Rules are short, because definitions of kinds have a limited size. */
const celPresence = (fields: readonly string[]): string =>
  `[${fields.map((field) => `has(${celField(field)})`).join(',')}]`

export function exactlyOneOf(...fields: readonly string[]): Rule {
  const cel =
    fields.length === 2
      ? fields.map((field) => `has(${celField(field)})`).join(' != ')
      : `${celPresence(fields)}.exists_one(x,x)`
  return groupRule('exactly one', fields, cel, (present) => present === 1)
}

export function atLeastOneOf(...fields: readonly string[]): Rule {
  const cel = fields.map((field) => `has(${celField(field)})`).join('||')
  return groupRule('at least one', fields, cel, (present) => present >= 1)
}

export function atMostOneOf(...fields: readonly string[]): Rule {
  const cel =
    fields.length === 2
      ? fields.map((field) => `!has(${celField(field)})`).join(' || ')
      : `${celPresence(fields)}.filter(x,x).size()<=1`
  return groupRule('at most one', fields, cel, (present) => present <= 1)
}

/** Creates a rule for values of type T. */
export function rule<T>(definition: {
  readonly message: string
  readonly cel?: string
  readonly holds: (value: T) => boolean
  readonly example?: (value: T) => string | undefined
  readonly at?: string
}): Rule {
  return definition
}
