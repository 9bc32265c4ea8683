/** Any server that has some of the formats of vendors A and C. Others are translated to its formats of conversations. */
import { servedAsMessages } from '../../../../../engines/messages/formats/invoke-model/index.ts'
import type { Plan } from '../../../../../engines/messages/plan.ts'
import { storedCollections } from '../../../../../engines/messages/stored/collections.ts'
import { foreignPlan } from '../foreign-plan.ts'
import { formatPath } from '../format-paths.ts'
import type { Provider, ProviderConfig } from '../provider.ts'

const systemName = 'custom'
const messagesVersion = '2023-06-01'

function pathOf(type: string, { formats = [] }: ProviderConfig): string | undefined {
  const served = formats.find((format) => format.type === type)
  return served && (served.path ?? formatPath(type))
}

/** The formats to which conversations are translated, best first. */
const targets = [
  { type: 'Completions', format: 'completions' },
  { type: 'Messages', format: 'messages' },
  { type: 'Responses', format: 'responses' },
] as const

/** Returns what conversations are translated to. */
function chatPlan(config: ProviderConfig): Plan | undefined {
  for (const { type, format } of targets) {
    const path = pathOf(type, config)
    if (path === undefined) continue
    const responsesPath = pathOf('Responses', config)
    return { kind: 'translated', path, format, ...(responsesPath && { responsesPath }) }
  }
  return undefined
}

const provider: Provider = {
  keyPlaces: { header: 'authorization' },
  systemName,
  defaultHost: ({ endpoint = '' }) => endpoint,
  plan(route, _model, config) {
    const path = pathOf(route, config)
    if (path !== undefined) return { kind: 'native', path }
    const messages = route === 'InvokeModel' ? pathOf('Messages', config) : undefined
    if (messages !== undefined) return { ...servedAsMessages, path: messages }
    const embeddings = pathOf('Embeddings', config)
    const { systemName: name = systemName } = config
    return foreignPlan(route, name, { chat: chatPlan(config), embeddings })
  },
  storedPath: (name, config) => pathOf(storedCollections[name].type, config),
  modelsPath: (config) =>
    pathOf('Completions', config)?.replace(/\/chat\/completions$/, '/models') ?? '/v1/models',
  /** Servers with vendor C's format expect the version of its API. */
  adaptHeaders(headers) {
    if (headers.get('anthropic-version') === undefined) {
      headers.set('anthropic-version', messagesVersion)
    }
  },
}

export default provider
