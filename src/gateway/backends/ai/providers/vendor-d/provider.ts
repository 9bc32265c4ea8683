/** Vendor D: the Gemini API. Its own formats are those of Gemini; embeddings of vendor A's clients stay in their format. */
import { vendorKeyPlaces } from '../../../../../engines/auth/vendor-keys.ts'
import { operationOf, type ReadRouteType } from '../../../../../engines/messages/formats/index.ts'
import type { Plan } from '../../../../../engines/messages/plan.ts'
import type { CountFormatName } from '../../../../../engines/messages/request/counts/index.ts'
import { foreignPlan } from '../foreign-plan.ts'
import { modelSegment } from '../model-segment.ts'
import { bearerToken, type Provider } from '../provider.ts'

const systemName = 'gcp.gemini'

/** Returns the path of a model, which requests may name `m`, `models/m` or `tunedModels/m`. */
function modelPath(model: string): string {
  const tuned = /^tunedModels\/(.+)$/.exec(model)?.[1]
  if (tuned !== undefined) return `tunedModels/${modelSegment(tuned)}`
  return `models/${modelSegment(model.replace(/^models\//, ''))}`
}

/** Plans requests to a model; `resource` is its path. Streams are always server-sent events. */
export function generatePlan(
  route: ReadRouteType,
  resource: string,
  isStream: boolean,
  counts: CountFormatName,
): Plan {
  const countPath = `${resource}:countTokens`
  if (route === 'GeminiCountTokens') return { kind: 'native', path: countPath }
  if (operationOf(route) === 'count_tokens') {
    return { kind: 'count', path: countPath, format: counts }
  }
  const path = `${resource}:${isStream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`
  if (route === 'GenerateContent') return { kind: 'native', path }
  const chat: Plan = { kind: 'translated', path, format: 'generate-content' }
  return foreignPlan(route, systemName, { chat })
}

/** Prefix of API keys; access tokens do not have it. */
const keyPrefix = 'AIza'

const provider: Provider = {
  keyPlaces: vendorKeyPlaces.vendorD,
  isOwnKey: (token) => token.startsWith(keyPrefix),
  systemName,
  defaultHost: () => 'generativelanguage.googleapis.com',
  plan(route, model, { pathPrefix = '/v1beta' }, isStream) {
    const resource = `${pathPrefix}/${modelPath(model)}`
    switch (route) {
      case 'Embeddings':
        return { kind: 'native', path: `${pathPrefix}/openai/embeddings` }
      case 'EmbedContent':
        return { kind: 'native', path: `${resource}:embedContent` }
      case 'BatchEmbedContents':
        return { kind: 'native', path: `${resource}:batchEmbedContents` }
      default:
        return generatePlan(route, resource, isStream, 'gemini')
    }
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
