/** Checks whether an OpenID provider can be used: its metadata, and the keys that it signs with. */
import { readKeySet } from '../../engines/auth/jwt/key-set.ts'
import { isObject, type JsonObject } from '../../ground/base/json-object.ts'
import { type IssuerRequest, metadataURL } from '../../ground/model/key-sets.ts'
import type { Resource } from '../../ground/model/resources.ts'
import { callBackend, type SecretLookup } from './call-backend.ts'
import { type CalledAddress, calledAddress } from './called-address.ts'
import { failureText } from './failure-text.ts'

/** What a check needs of the control plane. */
interface CheckContext {
  readonly resources: readonly Resource[]
  readonly secret: SecretLookup
  /** DNS domain of the cluster. */
  readonly clusterDomain: string
  readonly stop: AbortSignal
}

const maxBytes = 256 * 1024
const timeoutMs = 10_000

/** Resolves to what users should know; undefined if the provider can be used. */
export async function issuerProblem(
  request: IssuerRequest,
  context: CheckContext,
): Promise<string | undefined> {
  const { issuer, isDiscovered } = request
  let { jwksURI } = request
  if (isDiscovered) {
    const metadata = await read(metadataURL(issuer), request, context)
    if (typeof metadata === 'string') return metadata
    const named = URL.parse(String(metadata.issuer))?.href
    if (named !== new URL(issuer).href) return mismatch(metadata.issuer)
    const missing = ['authorization_endpoint', 'token_endpoint', 'jwks_uri'].find(
      (name) => !URL.canParse(String(metadata[name])),
    )
    if (missing !== undefined && !(missing === 'jwks_uri' && jwksURI !== undefined)) {
      return `the metadata of the provider has no usable ${missing}`
    }
    jwksURI ??= String(metadata.jwks_uri)
  }
  const set = await read(jwksURI ?? '', request, context)
  if (typeof set === 'string') return set
  const keys = readKeySet(set)
  if (typeof keys === 'string') return `the key set of the provider ${keys}`
  return keys.keys.length > 0 ? undefined : 'the key set of the provider has no key that can verify'
}

const mismatch = (named: unknown): string =>
  typeof named === 'string'
    ? `the metadata names another issuer: ${JSON.stringify(named.slice(0, 256))}`
    : 'the metadata names no issuer'

/** Resolves to a JSON object, or to why there is none. */
async function read(
  text: string,
  request: IssuerRequest,
  { resources, secret, clusterDomain, stop }: CheckContext,
): Promise<JsonObject | string> {
  const url = new URL(text)
  const isOwn = request.backend !== undefined && url.origin === new URL(request.issuer).origin
  const what = `${url.origin}${url.pathname}`
  try {
    const address =
      isOwn && request.backend !== undefined
        ? calledAddress(request.backend, resources, clusterDomain, Math.random)
        : addressOf(url)
    const call = {
      method: 'GET',
      path: `${url.pathname}${url.search}`,
      headers: { accept: 'application/json' },
      timeoutMs,
      maxBytes,
    } as const
    const answer = await callBackend(address, call, secret, stop)
    if (answer.status !== 200) return `${what} responds with ${answer.status}`
    const document: unknown = JSON.parse(answer.text)
    return isObject(document) ? document : `${what} is not a JSON object`
  } catch (error) {
    if (stop.aborted) throw error
    if (error instanceof SyntaxError) return `${what} is not JSON`
    return `${what} cannot be fetched: ${failureText(error)}`
  }
}

function addressOf({ protocol, hostname, port }: URL): CalledAddress {
  const isSecure = protocol === 'https:'
  const byDefault = isSecure ? 443 : 80
  const host = hostname.replace(/^\[|\]$/g, '')
  const tls = isSecure ? ({ verify: 'full' } as const) : undefined
  return { host, port: port === '' ? byDefault : Number(port), name: host, tls }
}
