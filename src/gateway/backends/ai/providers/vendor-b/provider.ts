/** Vendor B: Azure OpenAI. It has vendor A's formats; the version of the API decides the path. */

import { entraTokens } from '../../../../../engines/auth/entra/default-token.ts'
import { modelResource } from '../../../../../engines/auth/entra/resources.ts'
import { vendorKeyPlaces } from '../../../../../engines/auth/vendor-keys.ts'
import type { ReadRouteType } from '../../../../../engines/messages/formats/index.ts'
import type { Plan } from '../../../../../engines/messages/plan.ts'
import { storedCollections } from '../../../../../engines/messages/stored/collections.ts'
import { cloudTokens } from '../../credentials/default-credentials.ts'
import { foreignPlan } from '../foreign-plan.ts'
import { modelSegment } from '../model-segment.ts'
import { bearerToken, type Provider, type ProviderConfig } from '../provider.ts'

const suffixes: Readonly<Partial<Record<ReadRouteType, string>>> = {
  Completions: 'chat/completions',
  Responses: 'responses',
  Embeddings: 'embeddings',
  TextCompletions: 'completions',
  Images: 'images/generations',
  Speech: 'audio/speech',
  Transcriptions: 'audio/transcriptions',
  Translations: 'audio/translations',
  ImageEdits: 'images/edits',
}

const systemName = 'azure.ai.openai'

const shared: ReadonlySet<string> = new Set(['responses', 'files', 'batches', 'conversations'])

function pathOf(suffix: string, config: ProviderConfig): string {
  const { apiVersion = 'v1', deploymentName, pathPrefix = '/openai/v1' } = config
  if (apiVersion === 'v1') return `${pathPrefix}/${suffix}`
  const query = `?api-version=${encodeURIComponent(apiVersion)}`
  if (apiVersion === 'preview') return `/openai/v1/${suffix}${query}`
  if (suffix === 'realtime') {
    return `/openai/realtime${query}&deployment=${encodeURIComponent(deploymentName ?? '')}`
  }
  // In dated versions, paths of what belongs to no deployment have none: the model is in the body.
  if (shared.has(suffix)) return `/openai/${suffix}${query}`
  return `/openai/deployments/${modelSegment(deploymentName ?? '')}/${suffix}${query}`
}

const cloudCredentials = cloudTokens({
  source: () => entraTokens(modelResource),
  domains: [
    'openai.azure.com',
    'cognitiveservices.azure.com',
    'services.ai.azure.com',
    'openai.azure.us',
    'cognitiveservices.azure.us',
    'openai.azure.cn',
    'cognitiveservices.azure.cn',
  ],
  missing:
    'no Entra token: neither a client secret, nor a workload identity, nor a managed identity is there',
})

const provider: Provider = {
  keyPlaces: vendorKeyPlaces.vendorB,
  systemName,
  defaultHost: ({ endpoint = '' }) => endpoint.replace(/^[a-z]+:\/\//i, '').replace(/\/.*$/, ''),
  plan(route, _model, config) {
    const suffix = suffixes[route]
    if (suffix !== undefined) return { kind: 'native', path: pathOf(suffix, config) }
    const chat: Plan = {
      kind: 'translated',
      path: pathOf('chat/completions', config),
      format: 'completions',
      responsesPath: pathOf('responses', config),
    }
    return foreignPlan(route, systemName, { chat, embeddings: pathOf('embeddings', config) })
  },
  /** Undefined for dated versions, which list the models that can be deployed, not the deployed ones. */
  modelsPath: ({ apiVersion = 'v1', ...config }) =>
    apiVersion === 'v1' || apiVersion === 'preview'
      ? pathOf('models', { ...config, apiVersion })
      : undefined,
  storedPath: (name, config) =>
    storedCollections[name].errors === 'openai' ? pathOf(name, config) : undefined,
  realtimePath: (config) => pathOf('realtime', config),
  /** Sends keys in `api-key`; tokens of Entra stay in Authorization. */
  adaptHeaders(headers) {
    const token = bearerToken(headers)
    if (token !== undefined && !isJwt(token)) headers.set('api-key', token)
  },
  cloudCredentials,
}

export default provider

/** Tokens of Entra are JSON Web Tokens; keys are not. */
const isJwt = (token: string): boolean => /^eyJ[\w-]*\.[\w-]+\.[\w-]*$/.test(token)
