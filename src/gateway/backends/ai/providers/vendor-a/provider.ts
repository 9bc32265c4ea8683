/** Vendor A: OpenAI. Its own formats are chat completions, responses, embeddings and realtime. */

import { operationOf, type ReadRouteType } from '../../../../../engines/messages/formats/index.ts'
import type { Plan } from '../../../../../engines/messages/plan.ts'
import { storedCollections } from '../../../../../engines/messages/stored/collections.ts'
import { foreignPlan } from '../foreign-plan.ts'
import { below, type Provider } from '../provider.ts'

const paths: Readonly<Partial<Record<ReadRouteType, string>>> = {
  Completions: 'chat/completions',
  Responses: 'responses',
  Embeddings: 'embeddings',
  TextCompletions: 'completions',
  Images: 'images/generations',
  Speech: 'audio/speech',
  Moderations: 'moderations',
  ResponsesTokenCount: 'responses/input_tokens',
  ResponsesCompact: 'responses/compact',
  Transcriptions: 'audio/transcriptions',
  Translations: 'audio/translations',
  ImageEdits: 'images/edits',
  ImageVariations: 'images/variations',
}

const systemName = 'openai'

const provider: Provider = {
  keyPlaces: { header: 'authorization' },
  takesSubprotocolKey: true,
  systemName,
  defaultHost: () => 'api.openai.com',
  plan(route, _model, config) {
    const path = paths[route]
    if (path !== undefined) return { kind: 'native', path: below(path, config) }
    if (operationOf(route) === 'count_tokens') {
      return { kind: 'count', path: below('responses/input_tokens', config), format: 'responses' }
    }
    const chat: Plan = {
      kind: 'translated',
      path: below('chat/completions', config),
      format: 'completions',
      responsesPath: below('responses', config),
    }
    return foreignPlan(route, systemName, { chat, embeddings: below('embeddings', config) })
  },
  modelsPath: (config) => below('models', config),
  storedPath: (name, config) =>
    storedCollections[name].errors === 'openai' ? below(name, config) : undefined,
  realtimePath: (config) => below('realtime', config),
  adaptHeaders: () => undefined,
}

export default provider
