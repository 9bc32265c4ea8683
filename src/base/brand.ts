/** A primitive that carries a meaning, so that two meanings of one shape cannot be mixed up. */
export type Brand<Base, Name extends string> = Base & { readonly __brand: Name }
