/** Goes on with a value that is usually there at once, and sometimes comes later. */

/**
 * Calls `next` with the value and up to three more arguments: at once, or once the promise is fulfilled. A rejection
 * passes `next` by.
 *
 * On hot paths this is better than a callback with `then`: V8 makes memory for the variables of a callback when the
 * function around it is entered, even if the callback is never made.
 */
export function andThen<T, R>(value: T | Promise<T>, next: (value: T) => R): R | Promise<Awaited<R>>
export function andThen<T, A, R>(
  value: T | Promise<T>,
  next: (value: T, a: A) => R,
  a: A,
): R | Promise<Awaited<R>>
export function andThen<T, A, B, R>(
  value: T | Promise<T>,
  next: (value: T, a: A, b: B) => R,
  a: A,
  b: B,
): R | Promise<Awaited<R>>
export function andThen<T, A, B, C, R>(
  value: T | Promise<T>,
  next: (value: T, a: A, b: B, c: C) => R,
  a: A,
  b: B,
  c: C,
): R | Promise<Awaited<R>>
export function andThen<T, R>(
  value: T | Promise<T>,
  next: (value: T, a?: unknown, b?: unknown, c?: unknown) => R,
  a?: unknown,
  b?: unknown,
  c?: unknown,
): R | Promise<Awaited<R>> {
  return value instanceof Promise ? later(value, next, a, b, c) : next(value, a, b, c)
}

async function later<T, R>(
  value: Promise<T>,
  next: (value: T, a: unknown, b: unknown, c: unknown) => R,
  a: unknown,
  b: unknown,
  c: unknown,
): Promise<Awaited<R>> {
  return await next(await value, a, b, c)
}
