/** Vendor F: Amazon Bedrock. Conversations use Converse, embeddings InvokeModel. */

import { isObject, parseJson } from '../../../../../engines/messages/json/json.ts'
import { cloudSignature } from '../../credentials/default-credentials.ts'
import { modelSegment } from '../model-segment.ts'
import type { Provider } from '../provider.ts'

const defaultRegion = 'us-east-1'

/** Names of beta features that the provider accepts. */
const betas: ReadonlySet<string> = new Set([
  'computer-use-2025-01-24',
  'context-1m-2025-08-07',
  'effort-2025-11-24',
  'interleaved-thinking-2025-05-14',
  'output-128k-2025-02-19',
])

const provider: Provider = {
  keyPlaces: { header: 'authorization' },
  systemName: 'aws.bedrock',
  defaultHost: ({ region = defaultRegion }) => `bedrock-runtime.${region}.amazonaws.com`,
  plan(route, model, _config, isStream) {
    const resource = `/model/${modelSegment(model)}`
    switch (route) {
      case 'Embeddings':
        return { kind: 'embeddings', path: `${resource}/invoke`, format: 'invoke' }
      case 'VendorCTokenCount':
        return model.includes('anthropic.claude')
          ? { kind: 'invoke-count', path: `${resource}/count-tokens` }
          : { kind: 'local-count' }
      default: {
        const path = `${resource}/${isStream ? 'converse-stream' : 'converse'}`
        return { kind: 'translated', path, format: 'converse' }
      }
    }
  },
  signingScope: ({ region = defaultRegion }) => ({ region, service: 'bedrock' }),
  adaptHeaders: () => undefined,
  requestOptions({ guardrail }, caching, headers) {
    const metadata = parseJson(headers.get('x-bedrock-metadata') ?? '')
    const supportedBetas = headers
      .getAll('anthropic-beta')
      .flatMap((line) => line.split(','))
      .map((name) => name.trim())
      .filter((name) => betas.has(name))
    return {
      ...(guardrail && { guardrail }),
      ...(caching && { caching }),
      ...(isObject(metadata) && { requestMetadata: metadata }),
      ...(supportedBetas.length > 0 && { additional: { anthropic_beta: supportedBetas } }),
    }
  },
  cloudCredentials: cloudSignature,
}

export default provider
