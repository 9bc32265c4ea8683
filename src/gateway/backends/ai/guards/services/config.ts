/** The settings of guard services in the form that the proxy receives. */
import {
  amount,
  choice,
  flag,
  type Infer,
  integer,
  list,
  optional,
  record,
  text,
} from '../../../../../ground/base/shape.ts'

const severity = integer(0, 7)
const versioned = record({ apiVersion: text })

export const serviceShapes = {
  bedrockGuardrails: record({ identifier: text, version: text, region: text }),
  googleModelArmor: record({ templateId: text, projectId: text, location: text }),
  azureContentSafety: record({
    host: optional(text),
    analyzeText: optional(
      record({
        apiVersion: text,
        severityThreshold: severity,
        blocklistNames: list(text),
        haltOnBlocklistHit: flag,
      }),
    ),
    promptShield: optional(versioned),
    detectJailbreak: optional(versioned),
  }),
  presidio: record({
    language: text,
    entities: optional(list(text)),
    scoreThreshold: optional(amount),
    rejects: flag,
  }),
  moderation: record({ model: text }),
  judge: record({
    model: text,
    format: choice('Verdict', 'LlamaGuard', 'NemoGuard'),
    instructions: optional(text),
  }),
} as const

export type BedrockConfig = Infer<(typeof serviceShapes)['bedrockGuardrails']>
export type ModelArmorConfig = Infer<(typeof serviceShapes)['googleModelArmor']>
export type AzureConfig = Infer<(typeof serviceShapes)['azureContentSafety']>
export type PresidioConfig = Infer<(typeof serviceShapes)['presidio']>
export type ModerationServiceConfig = Infer<(typeof serviceShapes)['moderation']>
export type JudgeConfig = Infer<(typeof serviceShapes)['judge']>

export type ServiceName = keyof typeof serviceShapes

export const serviceNames = Object.keys(serviceShapes) as readonly ServiceName[]
