/** vendorF: Amazon Bedrock. Conversations by Converse, embeddings by InvokeModel. */
import { modelSegment } from './model-segment.ts'
import type { Provider } from './provider.ts'

export const defaultRegion = 'us-east-1'

export const vendorF: Provider = {
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
}
