/** Vendor E: Vertex AI, which serves models of vendors C and D, and others. */
import { applicationDefault } from '../../../../../engines/auth/google/application-default.ts'
import { operationOf, type ReadRouteType } from '../../../../../engines/messages/formats/index.ts'
import { servedAsMessages } from '../../../../../engines/messages/formats/invoke-model/index.ts'
import {
  field,
  isObject,
  type JsonObject,
  objectAt,
} from '../../../../../engines/messages/json/json.ts'
import type { Plan } from '../../../../../engines/messages/plan.ts'
import { cloudTokens } from '../../credentials/default-credentials.ts'
import { foreignPlan } from '../foreign-plan.ts'
import { modelSegment } from '../model-segment.ts'
import type { Provider, ProviderConfig } from '../provider.ts'
import { generatePlan } from '../vendor-d/provider.ts'

const systemName = 'gcp.vertex_ai'
const rawVersion = 'vertex-2023-10-16'

function hostOf({ region = 'global' }: ProviderConfig): string {
  if (region === 'global') return 'aiplatform.googleapis.com'
  // The locations `us` and `eu` span several regions.
  if (region === 'us' || region === 'eu') return `aiplatform.${region}.rep.googleapis.com`
  return `${region}-aiplatform.googleapis.com`
}

function prefixOf(config: ProviderConfig): string {
  const { projectId = '', region = 'global', pathPrefix = '/v1' } = config
  return `${pathPrefix}/projects/${modelSegment(projectId)}/locations/${modelSegment(region)}`
}

/** Returns the bare name of a model of vendor C, with its date after `@`; undefined for other models. */
function messagesModel(model: string): string | undefined {
  const published = /publishers\/anthropic\/models\/(.+)$/.exec(model)?.[1]
  const prefixed = model.startsWith('anthropic/') ? model.slice('anthropic/'.length) : undefined
  const bare = published ?? prefixed ?? (model.startsWith('claude-') ? model : undefined)
  return bare?.replace(/-(\d{8})$/, '@$1')
}

const embeddingModel =
  /^(text-embedding-|gemini-embedding-|text-multilingual-embedding-|textembedding-|multimodalembedding)/

/** Returns the bare name of a conversational model of vendor D; undefined for other models. */
function generateModel(model: string): string | undefined {
  const bare = bareName(model)
  return /^gemini[-@]/.test(bare) && !embeddingModel.test(bare) ? bare : undefined
}

function bareName(model: string): string {
  return model.replace(/^(?:.*publishers\/google\/models\/|models\/|google\/)/, '')
}

/** Removes fields that the raw endpoint of vendor C's models rejects, and adds the version of its format. */
function toRawBody(body: JsonObject): JsonObject {
  const { model: _model, output_format: format, ...rest } = body
  const raw = withoutScope(rest) as JsonObject
  // The endpoint knows only the newer name of the field.
  const config =
    format == null ? {} : { output_config: { format, ...objectAt(rest, 'output_config') } }
  return { anthropic_version: rawVersion, ...raw, ...config }
}

/** Removes `cache_control.scope` at any depth. */
function withoutScope(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutScope)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => {
      if (key !== 'cache_control' || field(part, 'scope') === undefined) {
        return [key, withoutScope(part)]
      }
      const { scope: _scope, ...rest } = part as JsonObject
      return [key, rest]
    }),
  )
}

function rawPlan(route: ReadRouteType, prefix: string, model: string, isStream: boolean): Plan {
  const models = `${prefix}/publishers/anthropic/models`
  if (route === 'VendorCTokenCount') {
    // Token counts have a separate path, which does not contain the model; it is in the body.
    const change = (body: JsonObject) => ({ ...toRawBody(body), model })
    return { kind: 'native', path: `${models}/count-tokens:rawPredict`, change }
  }
  const verb = isStream ? 'streamRawPredict' : 'rawPredict'
  const path = `${models}/${modelSegment(model)}:${verb}`
  if (route === 'InvokeModel') {
    const change = ({ anthropic_version: _version, ...body }: JsonObject) => toRawBody(body)
    return { ...servedAsMessages, path, change }
  }
  return route === 'Messages'
    ? { kind: 'native', path, change: toRawBody }
    : foreignPlan(route, systemName, {
        chat: { kind: 'translated', path, format: 'messages', change: toRawBody },
      })
}

const cloudCredentials = cloudTokens({
  source: () => applicationDefault(),
  domains: ['googleapis.com'],
  missing:
    'no application default credentials: neither GOOGLE_APPLICATION_CREDENTIALS, nor the file of gcloud, nor a metadata server has any',
})

const provider: Provider = {
  keyPlaces: { header: 'authorization' },
  systemName,
  defaultHost: hostOf,
  place: ({ region = 'global' }) => ({ geography: region === 'global' ? region : 'regional' }),
  plan(route, model, config, isStream) {
    const prefix = prefixOf(config)
    if (operationOf(route) === 'embeddings') {
      const path = `${prefix}/publishers/google/models/${modelSegment(bareName(model))}:predict`
      return { kind: 'embeddings', path, format: 'predict' }
    }
    const vendorCModel = messagesModel(model)
    if (vendorCModel !== undefined) return rawPlan(route, prefix, vendorCModel, isStream)
    const vendorDModel = generateModel(model)
    if (vendorDModel !== undefined) {
      const resource = `${prefix}/publishers/google/models/${modelSegment(vendorDModel)}`
      return generatePlan(route, resource, isStream, 'vertex')
    }
    const path = `${prefix}/endpoints/openapi/chat/completions`
    if (route === 'Completions') return { kind: 'native', path }
    const chat: Plan = { kind: 'translated', path, format: 'completions' }
    return foreignPlan(route, systemName, { chat })
  },
  adaptHeaders: () => undefined,
  cloudCredentials,
}

export default provider
