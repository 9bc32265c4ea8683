/** Lists of models in the formats of vendors A, C and D, with what the catalog knows. */
import type { ModelEntry, ModelFacts } from '../../../../engines/messages/catalog/facts.ts'
import type { JsonObject } from '../../../../engines/messages/json/json.ts'
import type { RequestHead } from '../../../../ground/exchange/exchange.ts'

/** A model that clients can ask for. */
export interface ListedModel {
  readonly id: string
  readonly owner: string
  /** What the catalog knows about the model that the provider gets; undefined if it may be any. */
  readonly facts: ModelFacts | undefined
  readonly entry: ModelEntry | undefined
}

/** The format of a list, by the path and the headers of the request. */
interface ListFormat {
  readonly errors: 'openai' | 'anthropic' | 'google'
  list(models: readonly ListedModel[]): JsonObject
  one(model: ListedModel): JsonObject
}

/** SDKs of vendor D use paths of both versions, and name themselves. */
export function listFormatOf({ path, headers }: Pick<RequestHead, 'path' | 'headers'>): ListFormat {
  const isGoogle = headers.get('x-goog-api-client') !== undefined
  if (isGoogle || /\/v1beta\/models(?:\/|$)/i.test(path)) return google
  return headers.get('anthropic-version') === undefined ? openAi : anthropic
}

/** The time of the release in milliseconds; 0 if it is not known. */
const releasedAt = ({ entry }: ListedModel): number =>
  entry?.released === undefined ? 0 : Date.parse(entry.released)

const isUnknown = ({ facts }: ListedModel): boolean =>
  facts === undefined || facts.basis === 'unknown'

const thinks = ({ facts }: ListedModel): boolean =>
  facts?.thinking !== undefined && facts.thinking !== false

function openAiModel(model: ListedModel): JsonObject {
  const { id, owner, facts, entry } = model
  const { limits, structuredOutput } = facts ?? {}
  return {
    id,
    object: 'model',
    created: Math.floor(releasedAt(model) / 1_000),
    owned_by: owner,
    context_window: limits?.context,
    max_output_tokens: limits?.output,
    input_modalities: entry?.modalities?.input,
    output_modalities: entry?.modalities?.output,
    capabilities: isUnknown(model)
      ? undefined
      : { reasoning: thinks(model), structured_outputs: structuredOutput },
  }
}

const openAi: ListFormat = {
  errors: 'openai',
  list: (models) => ({ object: 'list', data: models.map(openAiModel) }),
  one: openAiModel,
}

const supported = (isSupported: boolean) => ({ supported: isSupported })

const timeText = (ms: number): string => new Date(ms).toISOString().replace('.000Z', 'Z')

function anthropicModel(model: ListedModel): JsonObject {
  const { id, facts, entry } = model
  const input = entry?.modalities?.input
  const { limits, structuredOutput, thinking } = facts ?? {}
  const forms = thinking === undefined || thinking === false ? undefined : thinking.forms
  return {
    type: 'model',
    id,
    display_name: id,
    created_at: timeText(releasedAt(model)),
    max_input_tokens: limits?.context ?? null,
    max_tokens: limits?.output ?? null,
    lifecycle: 'active',
    deprecated_at: null,
    retires_at: entry?.retires === undefined ? null : timeText(Date.parse(entry.retires)),
    capabilities: isUnknown(model)
      ? null
      : {
          image_input: input && supported(input.includes('image')),
          pdf_input: input && supported(input.includes('pdf')),
          structured_outputs:
            structuredOutput === undefined ? undefined : supported(structuredOutput),
          thinking: {
            supported: forms !== undefined,
            types: {
              adaptive: supported(forms?.includes('adaptive') === true),
              enabled: supported(forms?.includes('budget') === true),
            },
          },
        },
  }
}

const anthropic: ListFormat = {
  errors: 'anthropic',
  list: (models) => ({
    data: models.map(anthropicModel),
    has_more: false,
    first_id: models[0]?.id ?? null,
    last_id: models.at(-1)?.id ?? null,
  }),
  one: anthropicModel,
}

function googleModel(model: ListedModel): JsonObject {
  const { id, facts } = model
  return {
    name: `models/${id}`,
    displayName: id,
    inputTokenLimit: facts?.limits?.context,
    outputTokenLimit: facts?.limits?.output,
    supportedGenerationMethods: ['generateContent', 'countTokens'],
    thinking: isUnknown(model) ? undefined : thinks(model),
  }
}

const google: ListFormat = {
  errors: 'google',
  list: (models) => ({ models: models.map(googleModel) }),
  one: googleModel,
}
