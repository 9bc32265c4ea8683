/** A shape that this version cannot read; caught per resource, never seen outside `wire`. */
export class Unreadable extends Error {}

/** The word where it is one of the known ones. */
export function oneOf<const Word extends string>(
  words: readonly Word[],
  value: string,
  what: string,
): Word {
  const found = words.find((word) => word === value)
  if (found === undefined) {
    throw new Unreadable(`${what} ${JSON.stringify(value)} is not known to this version`)
  }
  return found
}

/** The message where it was sent. */
export function present<Value>(value: Value | undefined, what: string): Value {
  if (value === undefined) throw new Unreadable(`${what} is missing`)
  return value
}
