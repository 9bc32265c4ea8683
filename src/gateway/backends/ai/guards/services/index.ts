/** The services that guards can ask, by the field of a guard that selects them. */

import type { Infer } from '../../../../../ground/base/shape.ts'
import { azure } from './azure.ts'
import { bedrock } from './bedrock.ts'
import type { ServiceName, serviceShapes } from './config.ts'
import { judge } from './judge.ts'
import { modelArmor } from './model-armor.ts'
import { moderation } from './moderation.ts'
import { presidio } from './presidio.ts'
import type { GuardService } from './service.ts'

type Services = {
  readonly [Name in ServiceName]: GuardService<Infer<(typeof serviceShapes)[Name]>>
}

const services: Services = {
  bedrockGuardrails: bedrock,
  googleModelArmor: modelArmor,
  azureContentSafety: azure,
  presidio,
  moderation,
  judge,
}

/** Returns a service. Its settings were checked with the shape of the same name. */
export const serviceOf = (name: ServiceName): GuardService<unknown> =>
  services[name] as GuardService<unknown>
