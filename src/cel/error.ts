/** Why an evaluation has no value; callers treat a missing key differently from the rest. */
type CelErrorKind =
  /** A key, index, field or variable that is not there, or a field of null. */
  | 'missing'
  /** No operator or function for values of these types. */
  | 'type'
  /** The types are right, the value is not: division by zero, an unparsable number, a bad pattern. */
  | 'value'
  /** A number outside int64 or uint64, a timestamp or duration outside its range. */
  | 'overflow'
  /** The evaluation took more steps than it may. */
  | 'cost'
  /** Something is larger or deeper than it may be, such as a body over its limit. */
  | 'limit'
  /** The expression called `fail`. */
  | 'fail'
  /** A bug of ours or of the supplier of a variable. */
  | 'internal'

/** An error as a value: never thrown, has no stack, and holds no value of the request. */
export class CelError {
  readonly kind: CelErrorKind
  readonly message: string

  constructor(kind: CelErrorKind, message: string) {
    this.kind = kind
    this.message = message
  }
}

export function isCelError(value: unknown): value is CelError {
  return value instanceof CelError
}

/** An operator or function that does not take values of these types. */
export function noOverload(name: string, ...types: readonly string[]): CelError {
  return new CelError('type', `${name} does not take ${types.join(', ')}`)
}
