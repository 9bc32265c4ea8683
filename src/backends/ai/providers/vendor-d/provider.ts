/** vendorD: the Gemini API. Conversations natively, embeddings on the endpoint in vendorA's format. */
import { modelSegment } from '../model-segment.ts'
import { bearerToken, type Provider } from '../provider.ts'

/** `m`, `models/m` and `tunedModels/m` all name a model. */
function modelPath(model: string): string {
  const tuned = /^tunedModels\/(.+)$/.exec(model)?.[1]
  if (tuned !== undefined) return `tunedModels/${modelSegment(tuned)}`
  return `models/${modelSegment(model.replace(/^models\//, ''))}`
}

export function generatePath(prefix: string, isStream: boolean): string {
  return isStream ? `${prefix}:streamGenerateContent?alt=sse` : `${prefix}:generateContent`
}

/** Keys of the API, unlike access tokens, begin with this. */
const keyPrefix = 'AIza'

const provider: Provider = {
  keyPlaces: { header: 'x-goog-api-key', parameter: 'key' },
  isOwnKey: (token) => token.startsWith(keyPrefix),
  systemName: 'gcp.gemini',
  defaultHost: () => 'generativelanguage.googleapis.com',
  plan(route, model, _config, isStream) {
    if (route === 'Embeddings') return { kind: 'native', path: '/v1beta/openai/embeddings' }
    if (route === 'VendorCTokenCount') return { kind: 'local-count' }
    const path = generatePath(`/v1beta/${modelPath(model)}`, isStream)
    return { kind: 'translated', path, format: 'generate-content' }
  },
  /** The native endpoint takes keys in a header of its own; that in vendorA's format takes them so. */
  adaptHeaders(headers, path) {
    const token = bearerToken(headers)
    if (!token?.startsWith(keyPrefix) || path.includes('/openai/')) return
    headers.set('x-goog-api-key', token)
    headers.remove('authorization')
  },
}

export default provider
