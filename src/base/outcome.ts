/**
 * The result of work on input that a user wrote: a value, or the problems that stand in its way.
 * Bad user input is never an exception; exceptions are for bugs and for the outside world.
 */
export type Outcome<Value, Problem> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly problems: readonly Problem[] }

/** A successful outcome. */
export function succeed<Value>(value: Value): Outcome<Value, never> {
  return { ok: true, value }
}

/** A failed outcome; at least one problem. */
export function fail<Problem>(...problems: [Problem, ...Problem[]]): Outcome<never, Problem> {
  return { ok: false, problems }
}

/** A failed outcome from a list that the caller knows to be non-empty. */
export function failAll<Problem>(problems: readonly Problem[]): Outcome<never, Problem> {
  return { ok: false, problems }
}
