/** What stops a preparation: told in a line, without a stack and without credentials. Exit code 1. */
export class IdentityProviderError extends Error {}

/** Longest piece of an answer that an error message repeats, in characters. */
const maxQuote = 200

/**
 * Credentials of a run. A server may repeat what it was sent, so whatever is quoted from an answer
 * goes through here first.
 */
export class Credentials {
  readonly #known = new Set<string>()

  /** Remembers a credential and returns it. */
  add(credential: string): string {
    if (credential !== '') this.#known.add(credential)
    return credential
  }

  /** The text on one line, shortened, with every credential of the run replaced. */
  hide(text: string): string {
    let shown = text
    // Longest first: a credential may be a part of another.
    for (const credential of [...this.#known].sort((a, b) => b.length - a.length)) {
      for (const form of [credential, JSON.stringify(credential).slice(1, -1)]) {
        shown = shown.replaceAll(form, '(credential)')
      }
    }
    const line = shown.replaceAll(/[\p{Cc}\s]+/gu, ' ').trim()
    return line.length > maxQuote ? `${line.slice(0, maxQuote)} ...` : line
  }
}
