import { inferenceGroup } from '../../../../../ground/model/api-names.ts'
import {
  choice,
  list,
  object,
  optional,
  required,
  text,
} from '../../../../../ground/schema/field.ts'
import { pathForm } from '../../../../../ground/schema/host.ts'
import { rule } from '../../../../../ground/schema/rules.ts'
import { portNumber, servicePortRule } from '../../../../../ground/schema/shapes/references.ts'
import { groupName, kindName, objectName } from '../../../../../ground/schema/strings.ts'
import { model } from '../vendor.ts'

const path = text({
  min: 1,
  max: 256,
  pattern: pathForm,
  expects: "a path that begins with '/', without query and spaces",
})

const serviceOrPool = rule<{ readonly group?: string; readonly kind?: string }>({
  message: 'must refer to a Service or an InferencePool',
  cel: `(has(self.group) ? self.group : '') + '/' + (has(self.kind) ? self.kind : 'Service') in ['/Service', '${inferenceGroup}/InferencePool']`,
  holds: ({ group = '', kind = 'Service' }) =>
    group === '' ? kind === 'Service' : group === inferenceGroup && kind === 'InferencePool',
  at: 'kind',
})

const modelServer = object(
  'ModelServerReference',
  {
    group: optional(groupName, {
      doc: `API group; empty for a Service, ${inferenceGroup} for an InferencePool.`,
      default: '',
    }),
    kind: optional(kindName, { doc: 'Service or InferencePool.', default: 'Service' }),
    name: required(objectName, 'Name of the Service or InferencePool.'),
    port: optional(portNumber, 'Port of the Service. Ignored for an InferencePool.'),
  },
  { rules: [servicePortRule, serviceOrPool] },
)

const format = object('CustomFormat', {
  type: required(
    choice('CustomFormatType', {
      Completions: 'chat completions (/v1/chat/completions)',
      Messages: 'messages of vendorC (/v1/messages)',
      Responses: 'responses (/v1/responses)',
      Embeddings: 'embeddings (/v1/embeddings)',
      VendorCTokenCount: 'token counts of vendorC (/v1/messages/count_tokens)',
      TextCompletions: 'text completions (/v1/completions)',
      Rerank: 'rerank (/v1/rerank)',
      Images: 'images by a prompt (/v1/images/generations)',
      Speech: 'speech (/v1/audio/speech)',
      Moderations: 'moderations (/v1/moderations)',
      Conversations: 'stored conversations (/v1/conversations)',
      Files: 'stored files (/v1/files)',
      Batches: 'batches of requests (/v1/batches)',
      MessageBatches: 'batches of messages of vendorC (/v1/messages/batches)',
    }),
    'Format of requests.',
  ),
  path: optional(path, 'URL path of the requests; the usual one if not set.'),
})

const formats = required(
  list(format, { min: 1, max: 16, unique: { by: ['type'] } }),
  'Formats that the server has. Requests in other formats are translated to its Completions or Messages.',
)

const config = object('CustomConfig', {
  model,
  backendRef: optional(
    modelServer,
    'Service or InferencePool in the same namespace that has the servers, in place of host and port.',
  ),
  formats,
})

/** The settings without a model, for models that are objects of their own. */
export const customModel = object('CustomModelConfig', {
  backendRef: optional(
    modelServer,
    'Service or InferencePool in the same namespace that has the servers. If not set, baseURL is required.',
  ),
  formats,
})

export const custom = {
  config: optional(config, 'Any server, at host or behind backendRef.'),
  provider: () => import('./provider.ts'),
}
