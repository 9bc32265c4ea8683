/** What a reader of a Kong plugin gets. */
import type { Conversion } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import type { RoutePlan } from '../plan.ts'
import type { Consumers } from './consumers.ts'

export interface PluginScene {
  /** The settings of the route, to which the plugin adds. */
  readonly plan: RoutePlan
  readonly consumers: Consumers
  readonly result: Conversion
  /** Name of the route. */
  readonly name: string
}

/** Reads `config` of a plugin. What it does not read is reported. */
export type PluginReader = (config: SourceField, scene: PluginScene) => void
