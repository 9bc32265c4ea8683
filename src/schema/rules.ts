import type { Rule } from './field.ts'

// Field names that CEL reserves are reached as `__name__`
// (Kubernetes, "Validation rules", escaping of property names).
const reserved = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
)

/** `self.field` as CEL must write it. */
function celField(field: string): string {
  return `self.${reserved.has(field) ? `__${field}__` : field}`
}

const celCount = (fields: readonly string[]): string =>
  fields.map((field) => `(has(${celField(field)}) ? 1 : 0)`).join(' + ')

const countPresent = (fields: readonly string[], value: object): number =>
  fields.filter((field) => (value as Record<string, unknown>)[field] !== undefined).length

const celAny = (fields: readonly string[]): string =>
  fields.map((field) => `has(${celField(field)})`).join(' || ')

/** Exactly one of the fields must be set. */
export function exactlyOneOf(...fields: readonly string[]): Rule {
  return {
    message: `exactly one of ${fields.join(', ')} must be set`,
    cel: `${celCount(fields)} == 1`,
    holds: (value: object) => countPresent(fields, value) === 1,
    presence: true,
    group: { count: 'exactly one', fields },
  }
}

/** One or more of the fields must be set. */
export function atLeastOneOf(...fields: readonly string[]): Rule {
  return {
    message: `at least one of ${fields.join(', ')} must be set`,
    cel: celAny(fields),
    holds: (value: object) => countPresent(fields, value) >= 1,
    presence: true,
    group: { count: 'at least one', fields },
  }
}

/** None or one of the fields may be set. */
export function atMostOneOf(...fields: readonly string[]): Rule {
  return {
    message: `at most one of ${fields.join(', ')} may be set`,
    cel: `${celCount(fields)} <= 1`,
    holds: (value: object) => countPresent(fields, value) <= 1,
    presence: true,
    group: { count: 'at most one', fields },
  }
}

/** A rule over values of type T. */
export function rule<T>(definition: {
  readonly message: string
  readonly cel?: string
  readonly holds: (value: T) => boolean
  readonly at?: string
}): Rule {
  return definition
}
