/**
 * Why an authorization server gave no credential. `message` contains no token, no secret and no text of the server
 * except for registered error codes.
 *
 *   unavailable   it may work later: no answer, an error of the server, or an answer that cannot be read
 *   refused       the server gives no credential for this user
 *   failed        the server refuses the gateway, or what it asks for
 */
export class TokenError extends Error {
  readonly kind: 'unavailable' | 'refused' | 'failed'
  /** The claims that the server demands of the user's token, as JSON; the client can ask for a token with them. */
  readonly claims: string | undefined

  constructor(
    kind: TokenError['kind'],
    message: string,
    { claims, cause }: { readonly claims?: string | undefined; readonly cause?: unknown } = {},
  ) {
    super(message, { cause })
    this.kind = kind
    this.claims = claims
  }
}

export const unavailable = (message: string, cause?: unknown): TokenError =>
  new TokenError('unavailable', message, { cause })
