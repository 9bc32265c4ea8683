/** How the gateway proves to a token endpoint who it is (RFC 6749 section 2.3, RFC 7523 section 2.2). */
import { createPrivateKey, hash, type KeyObject, X509Certificate } from 'node:crypto'
import type * as Oauth from 'oauth4webapi'
import type { SecretValues } from '../../ground/exchange/exchange.ts'
import { clientSecretText } from '../tokens/client-secret-text.ts'
import type { ClientAuthConfig, SigningAlgorithm, SigningKeyConfig } from './config.ts'

type Library = typeof Oauth

/** Reads a private key in PEM. Throws if it is none, or does not fit the algorithm. */
export function privateKeyOf(
  { key: digest, alg }: SigningKeyConfig,
  secrets: SecretValues,
): KeyObject {
  let key: KeyObject
  const pem = Buffer.from(secrets.value(digest))
  try {
    key = createPrivateKey(pem)
  } catch {
    // The cause is omitted because its message may contain the key.
    throw new Error('the signing key is not a private key in PEM')
  }
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key
  const curve = { ES256: 'prime256v1', ES384: 'secp384r1' }[alg as string]
  const fits = curve === undefined ? type === 'rsa' : details?.namedCurve === curve
  if (!fits) throw new Error(`the signing key does not fit the algorithm ${alg}`)
  if (type === 'rsa' && (details?.modulusLength ?? 0) < 2_048) {
    throw new Error('the signing key has less than 2048 bits')
  }
  return key
}

function webCryptoKey(key: KeyObject, alg: SigningAlgorithm) {
  const digest = `SHA-${alg.slice(2)}`
  const name = { R: 'RSASSA-PKCS1-v1_5', P: 'RSA-PSS', E: 'ECDSA' }[alg.slice(0, 1)] ?? ''
  const algorithm =
    name === 'ECDSA' ? { name, namedCurve: `P-${alg.slice(2)}` } : { name, hash: digest }
  return key.toCryptoKey(algorithm, false, ['sign'])
}

/** The values of the secrets of a client, which are read once. */
export interface ClientSecrets {
  readonly secret: string | undefined
  readonly key: KeyObject | undefined
  readonly certificate: X509Certificate | undefined
}

/** Throws if a value has not arrived, or cannot be used. */
export function readClientSecrets(
  { secret, assertion }: ClientAuthConfig,
  secrets: SecretValues,
): ClientSecrets {
  return {
    secret: secret === undefined ? undefined : clientSecretText(secret, secrets),
    key: assertion && privateKeyOf(assertion.signing, secrets),
    certificate:
      assertion?.certificate === undefined
        ? undefined
        : new X509Certificate(secrets.value(assertion.certificate)),
  }
}

export function clientAuthOf(
  oauth: Library,
  { method, assertion }: ClientAuthConfig,
  { secret = '', key, certificate }: ClientSecrets,
): Oauth.ClientAuth {
  if (method === 'ClientSecretBasic') return oauth.ClientSecretBasic(secret)
  if (method === 'ClientSecretPost') return oauth.ClientSecretPost(secret)
  if (assertion === undefined || key === undefined) throw new Error('a client has no signing key')
  const { signing, audience, certificateHeader } = assertion
  const { alg, kid } = signing
  // The declarations of Node and of browsers differ in a usage that no key has here.
  const own = { key: webCryptoKey(key, alg), ...(kid !== undefined && { kid }) }
  return oauth.PrivateKeyJwt(own as Parameters<Library['PrivateKeyJwt']>[0], {
    [oauth.modifyAssertion](header, payload) {
      payload.aud = audience
      if (certificate !== undefined)
        header[certificateHeader] = named(certificate, certificateHeader)
    },
  })
}

/** The certificate as a header of a token has it (RFC 7515 sections 4.1.6 and 4.1.8). */
function named({ raw }: X509Certificate, as: 'x5c' | 'x5t#S256'): string | string[] {
  return as === 'x5c' ? [raw.toString('base64')] : hash('sha256', raw, 'base64url')
}
