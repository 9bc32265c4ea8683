/**
 * The result of work on user input: a value or problems. Bad user input is never an exception;
 * exceptions are for bugs and for failures of the outside world.
 */
export type Outcome<Value, Problem> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly problems: readonly Problem[] }

export function succeed<Value>(value: Value): Outcome<Value, never> {
  return { ok: true, value }
}

export function fail<Problem>(...problems: [Problem, ...Problem[]]): Outcome<never, Problem> {
  return { ok: false, problems }
}

/** A failed outcome from a list that the caller knows to be non-empty. */
export function failAll<Problem>(problems: readonly Problem[]): Outcome<never, Problem> {
  return { ok: false, problems }
}
