/** Vendor A: OpenAI. Its own formats are chat completions, responses, embeddings and realtime. */
import type { ReadRouteType } from '../../../../../engines/messages/route-type.ts'
import type { Provider } from '../provider.ts'

const paths: Readonly<Partial<Record<ReadRouteType, string>>> = {
  Completions: '/v1/chat/completions',
  Responses: '/v1/responses',
  Embeddings: '/v1/embeddings',
}

const provider: Provider = {
  keyPlaces: { header: 'authorization' },
  takesSubprotocolKey: true,
  systemName: 'openai',
  defaultHost: () => 'api.openai.com',
  plan(route) {
    const path = paths[route]
    if (path !== undefined) return { kind: 'native', path }
    if (route === 'VendorCTokenCount') return { kind: 'local-count' }
    return { kind: 'translated', path: '/v1/chat/completions', format: 'completions' }
  },
  modelsPath: () => '/v1/models',
  realtimePath: () => '/v1/realtime',
  adaptHeaders: () => undefined,
}

export default provider
