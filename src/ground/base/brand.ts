/** A primitive type with a name, so that values of different meanings cannot be confused. */
export type Brand<Base, Name extends string> = Base & { readonly __brand: Name }
