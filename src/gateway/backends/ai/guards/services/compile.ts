/** Turns what users write about guard services into the form that proxies receive. */
import type { Infer } from '../../../../../ground/schema/field.ts'
import type { BackendAuthSpec } from '../../../../policies/backend-simple/auth/schema.ts'
import type {
  AzureConfig,
  BedrockConfig,
  JudgeConfig,
  ModelArmorConfig,
  ModerationServiceConfig,
  PresidioConfig,
  ServiceName,
} from './config.ts'
import { serviceNames } from './config.ts'
import type { serviceFields } from './schema.ts'

type Specs = {
  readonly [Name in ServiceName]: Infer<(typeof serviceFields)[Name]['schema']>
}

type ServiceSpecs = { readonly [Name in ServiceName]?: Specs[Name] | undefined }

interface CompiledService {
  readonly config: unknown
  /** Credentials for the host of the vendor, unless others are configured; undefined if there must be some. */
  readonly auth?: BackendAuthSpec
  /** Header of a key, if it is not Authorization. */
  readonly keyHeader?: string
}

const compilers: { readonly [Name in ServiceName]: (spec: Specs[Name]) => CompiledService } = {
  bedrockGuardrails: ({ identifier, version, region }) => ({
    config: { identifier, version, region } satisfies BedrockConfig,
    auth: { aws: { serviceName: 'bedrock', region } },
  }),
  googleModelArmor: ({ templateId, projectId, location = 'us-central1' }) => ({
    config: { templateId, projectId, location } satisfies ModelArmorConfig,
    auth: { gcp: {} },
  }),
  azureContentSafety: ({ endpoint, analyzeText, promptShield, detectJailbreak }) => {
    const host = endpoint?.replace(/^https:\/\//, '').replace(/\/$/, '')
    const isDefault = (analyzeText ?? promptShield ?? detectJailbreak) === undefined
    const analysis = analyzeText ?? (isDefault ? {} : undefined)
    const config: AzureConfig = {
      ...(host !== undefined && { host }),
      ...(analysis && {
        analyzeText: {
          apiVersion: analysis.apiVersion ?? '2024-09-01',
          severityThreshold: analysis.severityThreshold ?? 2,
          blocklistNames: analysis.blocklistNames ?? [],
          haltOnBlocklistHit: analysis.haltOnBlocklistHit ?? false,
        },
      }),
      ...(promptShield && {
        promptShield: { apiVersion: promptShield.apiVersion ?? '2024-09-01' },
      }),
      ...(detectJailbreak && {
        detectJailbreak: { apiVersion: detectJailbreak.apiVersion ?? '2024-02-15-preview' },
      }),
    }
    return { config, auth: { azure: {} }, keyHeader: 'ocp-apim-subscription-key' }
  },
  presidio: ({ language = 'en', entities, scoreThresholdPercent, action }) => ({
    config: {
      language,
      rejects: action === 'Reject',
      ...(entities && { entities }),
      ...(scoreThresholdPercent !== undefined && { scoreThreshold: scoreThresholdPercent / 100 }),
    } satisfies PresidioConfig,
  }),
  moderation: ({ model = 'omni-moderation-latest' }) => ({
    config: { model } satisfies ModerationServiceConfig,
  }),
  judge: ({ model, format = 'Verdict', instructions }) => ({
    config: {
      model,
      format,
      ...(instructions !== undefined && { instructions }),
    } satisfies JudgeConfig,
  }),
}

/** Returns the service of a guard; undefined if it has none. */
export const serviceNameOf = (guard: ServiceSpecs): ServiceName | undefined =>
  serviceNames.find((name) => guard[name] !== undefined)

/** Compiles the service of a guard, which has the field `name`. */
export function compileService(name: ServiceName, guard: ServiceSpecs): CompiledService {
  const compile = compilers[name] as (spec: ServiceSpecs[ServiceName]) => CompiledService
  return compile(guard[name])
}
