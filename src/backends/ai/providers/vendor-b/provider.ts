/** vendorB: Azure OpenAI. vendorA's formats; the version of the API decides the path. */
import { entraDefault } from '../../../../auth/entra/default-token.ts'
import { cloudTokens } from '../../credentials/default-credentials.ts'
import { modelSegment } from '../model-segment.ts'
import { bearerToken, type Provider, type ProviderConfig, type ReadRouteType } from '../provider.ts'

const suffixes: Readonly<Partial<Record<ReadRouteType, string>>> = {
  Completions: 'chat/completions',
  Messages: 'chat/completions',
  Responses: 'responses',
  Embeddings: 'embeddings',
}

function pathOf(suffix: string, { apiVersion = 'v1', deploymentName }: ProviderConfig): string {
  if (apiVersion === 'v1') return `/openai/v1/${suffix}`
  const query = `?api-version=${encodeURIComponent(apiVersion)}`
  if (apiVersion === 'preview') return `/openai/v1/${suffix}${query}`
  if (suffix === 'realtime') {
    return `/openai/realtime${query}&deployment=${encodeURIComponent(deploymentName ?? '')}`
  }
  // Of the dated versions this one resource belongs to no deployment: the model stays in the body.
  if (suffix === 'responses') return `/openai/responses${query}`
  return `/openai/deployments/${modelSegment(deploymentName ?? '')}/${suffix}${query}`
}

const cloudCredentials = cloudTokens({
  source: () => entraDefault(),
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
  keyPlaces: { header: 'api-key', parameter: 'api-key' },
  systemName: 'azure.ai.openai',
  defaultHost: ({ endpoint = '' }) => endpoint.replace(/^[a-z]+:\/\//i, '').replace(/\/.*$/, ''),
  plan(route, _model, config) {
    const suffix = suffixes[route]
    if (suffix === undefined) return { kind: 'local-count' }
    const path = pathOf(suffix, config)
    return route === 'Messages'
      ? { kind: 'translated', path, format: 'completions' }
      : { kind: 'native', path }
  },
  /** Dated versions list what can be deployed, not what is. */
  modelsPath: ({ apiVersion = 'v1', ...config }) =>
    apiVersion === 'v1' || apiVersion === 'preview'
      ? pathOf('models', { ...config, apiVersion })
      : undefined,
  realtimePath: (config) => pathOf('realtime', config),
  /** Keys are looked for in `api-key`, tokens of its directory in Authorization. */
  adaptHeaders(headers) {
    const token = bearerToken(headers)
    if (token !== undefined && !isJwt(token)) headers.set('api-key', token)
  },
  cloudCredentials,
}

export default provider

/** Tokens of the directory are JSON Web Tokens; keys are not. */
const isJwt = (token: string): boolean => /^eyJ[\w-]*\.[\w-]+\.[\w-]*$/.test(token)
