/** Vendor F: Amazon Bedrock. Conversations of other clients use Converse, embeddings InvokeModel. */

import { operationOf } from '../../../../../engines/messages/formats/index.ts'
import { isObject, parseJson } from '../../../../../engines/messages/json/json.ts'
import type { Plan } from '../../../../../engines/messages/plan.ts'
import { cloudSignature } from '../../credentials/default-credentials.ts'
import { foreignPlan } from '../foreign-plan.ts'
import { modelSegment } from '../model-segment.ts'
import type { Provider } from '../provider.ts'

const systemName = 'aws.bedrock'
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
  systemName,
  defaultHost: ({ region = defaultRegion }) => `bedrock-runtime.${region}.amazonaws.com`,
  plan(route, model, { pathPrefix = '' }, isStream) {
    const resource = `${pathPrefix}/model/${modelSegment(model)}`
    if (route === 'InvokeModel') {
      const verb = isStream ? 'invoke-with-response-stream' : 'invoke'
      return { kind: 'native', path: `${resource}/${verb}`, framing: 'chunks' }
    }
    if (operationOf(route) === 'embeddings') {
      return { kind: 'embeddings', path: `${resource}/invoke`, format: 'invoke' }
    }
    if (route === 'VendorCTokenCount' && model.includes('anthropic.claude')) {
      return { kind: 'count', path: `${resource}/count-tokens`, format: 'invoke' }
    }
    const path = `${resource}/${isStream ? 'converse-stream' : 'converse'}`
    if (route === 'Converse') return { kind: 'native', path, framing: 'event-stream' }
    const chat: Plan = { kind: 'translated', path, format: 'converse' }
    return foreignPlan(route, systemName, { chat })
  },
  place: ({ region = defaultRegion }) => ({ region }),
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
