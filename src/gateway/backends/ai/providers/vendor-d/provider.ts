/** Vendor D: the Gemini API. Conversations use its own format, embeddings use vendor A's format. */
import { vendorKeyPlaces } from '../../../../../engines/auth/vendor-keys.ts'
import { modelSegment } from '../model-segment.ts'
import { bearerToken, type Provider } from '../provider.ts'

/** Returns the path of a model, which requests may name `m`, `models/m` or `tunedModels/m`. */
function modelPath(model: string): string {
  const tuned = /^tunedModels\/(.+)$/.exec(model)?.[1]
  if (tuned !== undefined) return `tunedModels/${modelSegment(tuned)}`
  return `models/${modelSegment(model.replace(/^models\//, ''))}`
}

export function generatePath(prefix: string, isStream: boolean): string {
  return isStream ? `${prefix}:streamGenerateContent?alt=sse` : `${prefix}:generateContent`
}

/** Prefix of API keys; access tokens do not have it. */
const keyPrefix = 'AIza'

const provider: Provider = {
  keyPlaces: vendorKeyPlaces.vendorD,
  isOwnKey: (token) => token.startsWith(keyPrefix),
  systemName: 'gcp.gemini',
  defaultHost: () => 'generativelanguage.googleapis.com',
  plan(route, model, _config, isStream) {
    if (route === 'Embeddings') return { kind: 'native', path: '/v1beta/openai/embeddings' }
    if (route === 'VendorCTokenCount') return { kind: 'local-count' }
    const path = generatePath(`/v1beta/${modelPath(model)}`, isStream)
    return { kind: 'translated', path, format: 'generate-content' }
  },
  /** Moves keys to their header: only the endpoint in vendor A's format accepts them as bearer tokens. */
  adaptHeaders(headers, path) {
    const token = bearerToken(headers)
    if (!token?.startsWith(keyPrefix) || path.includes('/openai/')) return
    headers.set('x-goog-api-key', token)
    headers.remove('authorization')
  },
}

export default provider
