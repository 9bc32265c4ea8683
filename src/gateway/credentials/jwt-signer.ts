/** Signs a JSON Web Token for each request with a key of the gateway. */
import type { KeyObject } from 'node:crypto'
import { isCelError, writeJson } from '../../engines/cel/index.ts'
import { GatewayError } from '../../ground/errors/index.ts'
import {
  type Exchange,
  next,
  type SecretValues,
  type Verdict,
} from '../../ground/exchange/exchange.ts'
import { Expression } from '../variables/index.ts'
import { privateKeyOf } from './client-auth.ts'
import type { JwtSignConfig } from './config.ts'
import { type Placement, placementOf } from './placement.ts'

export class JwtSigner {
  readonly #config: JwtSignConfig
  readonly #key: KeyObject
  readonly #place: Placement
  readonly #claims: readonly (readonly [name: string, expression: Expression])[]

  /** Throws if the key has not arrived, or cannot be used. */
  constructor(config: JwtSignConfig, secrets: SecretValues) {
    this.#config = config
    this.#key = privateKeyOf(config.signing, secrets)
    this.#place = placementOf(config.location)
    this.#claims = Object.entries(config.claims).map(([name, source]) => [
      name,
      new Expression(source),
    ])
  }

  async onRequest(exchange: Exchange): Promise<Verdict> {
    // Evaluated at once, because values may be views of the request.
    const claims = this.#claimsFor(exchange)
    const { SignJWT } = await import('jose')
    const { signing, ttlMs } = this.#config
    const { alg, kid } = signing
    const now = Math.floor(Date.now() / 1_000)
    const token = await new SignJWT({ ...claims, iat: now, exp: now + Math.ceil(ttlMs / 1_000) })
      .setProtectedHeader({ alg, typ: 'JWT', ...(kid !== undefined && { kid }) })
      .sign(this.#key)
    this.#place(exchange.request, token)
    return next
  }

  /** @throws GatewayError if a claim has no value, because a backend may take a missing claim for a permission */
  #claimsFor(exchange: Exchange): Record<string, unknown> {
    const claims: Record<string, unknown> = {}
    for (const [name, expression] of this.#claims) {
      const result = expression.evaluate(exchange)
      const json = isCelError(result) || result === null ? result : writeJson(result)
      if (typeof json !== 'string') {
        throw new GatewayError('credentials_failed', `the expression of claim ${name} has no value`)
      }
      claims[name] = JSON.parse(json)
    }
    return claims
  }
}
