/** Proves that the gateway has the key of a token (DPoP, RFC 9449). */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hash,
  type KeyObject,
  randomUUID,
} from 'node:crypto'
import { BoundedMap } from '../../ground/base/bounded-map.ts'
import type { Exchange, HeaderFields } from '../../ground/exchange/exchange.ts'
import { forwardingExtensions } from '../../ground/exchange/forwarding.ts'

/** A private key as a JWK (RFC 7517), which is stored with its token. */
export type StoredKey = Readonly<Record<string, unknown>>

/** Maximum number of servers whose nonces are remembered. */
const maxNonces = 256
/** Longer nonces are not sent, because proofs must fit into a request head. */
const maxNonceLength = 1_024

/** A key pair for ES256. */
export class ProofKey {
  readonly #private: KeyObject

  private constructor(key: KeyObject) {
    this.#private = key
  }

  static generate(): ProofKey {
    return new ProofKey(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)
  }

  static read(jwk: StoredKey): ProofKey {
    return new ProofKey(createPrivateKey({ key: { ...jwk }, format: 'jwk' }))
  }

  get stored(): StoredKey {
    return { ...this.#private.export({ format: 'jwk' }) }
  }

  /** The key pair in the form that the OAuth library needs. */
  get pair() {
    const algorithm = { name: 'ECDSA', namedCurve: 'P-256' }
    return {
      privateKey: this.#private.toCryptoKey(algorithm, false, ['sign']),
      publicKey: createPublicKey(this.#private).toCryptoKey(algorithm, true, ['verify']),
    }
  }

  async sign(claims: Readonly<Record<string, unknown>>): Promise<string> {
    const { SignJWT } = await import('jose')
    const { kty, crv, x, y } = this.stored
    return new SignJWT({ ...claims, jti: randomUUID() })
      .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk: { kty, crv, x, y } as object })
      .setIssuedAt()
      .sign(this.#private)
  }
}

let provers = 0

/** Adds proofs to requests to backends, with the nonces that the backends demand. */
export class Prover {
  /** The last nonce of each server, by its origin. */
  readonly #nonces = new BoundedMap<string, string>(maxNonces)
  /** With an origin: that a request to it was sent again. One exchange may have requests to several servers. */
  readonly #isRepeated = `credentials.dpop.repeated.${provers++}`

  /** Adds a proof to a request. A proof of the client is for the gateway and is replaced. */
  async prove(exchange: Exchange, key: ProofKey, token: string): Promise<void> {
    const { method, path, headers } = exchange.request
    const origin = originOf(exchange)
    const nonce = this.#nonces.get(origin)
    headers.remove('dpop')
    const proof = await key.sign({
      htm: method,
      htu: `${origin}${path}`,
      ath: hash('sha256', token, 'base64url'),
      ...(nonce !== undefined && { nonce }),
    })
    headers.set('dpop', proof)
  }

  /**
   * Moves the nonce from the response to the store. Returns whether the request should be sent again with it: at most
   * once, so that a server with a new nonce in each response causes no loop.
   */
  learn(
    exchange: Exchange,
    status: number,
    headers: Pick<HeaderFields, 'get' | 'getAll' | 'remove'>,
  ): boolean {
    const nonce = headers.get('dpop-nonce')
    if (nonce === undefined) return false
    const origin = originOf(exchange)
    headers.remove('dpop-nonce')
    // RFC 9449 section 8.1: the characters of a nonce.
    if (nonce.length > maxNonceLength || !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(nonce)) return false
    this.#nonces.set(origin, nonce)
    const asks = headers.getAll('www-authenticate').some((field) => /use_dpop_nonce/.test(field))
    const { extensions } = exchange
    const repeated = `${this.#isRepeated} ${origin}`
    if (status !== 401 || !asks || extensions.has(repeated)) return false
    extensions.set(repeated, true)
    return true
  }
}

/** The origin that the request of an exchange is sent to. */
function originOf({ request, extensions }: Pick<Exchange, 'request' | 'extensions'>): string {
  const scheme = extensions.get(forwardingExtensions.upstreamScheme) ?? request.scheme
  return `${String(scheme)}://${request.authority}`
}
