/** Why an evaluation has no value. Callers treat `missing` differently from the other kinds. */
type CelErrorKind =
  /** A key, index, field or variable does not exist, or a field of null was read. */
  | 'missing'
  /** There is no such operator or function for values of these types. */
  | 'type'
  /** The types are right but the value is not: division by zero, an unparsable number, a bad pattern. */
  | 'value'
  /** A number is outside int64 or uint64, or a timestamp or duration is outside its range. */
  | 'overflow'
  /** The evaluation took more steps than are allowed. */
  | 'cost'
  /** A value is larger or nests deeper than is allowed, such as a body over its limit. */
  | 'limit'
  /** The expression called `fail`. */
  | 'fail'
  /** There is a bug in this code or in the supplier of a variable. */
  | 'internal'

/** An error as a value. It is never thrown, has no stack, and only that of `fail` may contain data of the request. */
export class CelError {
  readonly kind: CelErrorKind
  readonly message: string

  constructor(kind: CelErrorKind, message: string) {
    this.kind = kind
    this.message = message
  }
}

/** Returns the message without data of the request. */
export function errorText({ kind, message }: CelError): string {
  return kind === 'fail' ? 'the expression called fail' : message
}

export function isCelError(value: unknown): value is CelError {
  return value instanceof CelError
}

/** The error of an operator or function that does not take values of these types. */
export function noOverload(name: string, ...types: readonly string[]): CelError {
  return new CelError('type', `${name} does not take ${types.join(', ')}`)
}
