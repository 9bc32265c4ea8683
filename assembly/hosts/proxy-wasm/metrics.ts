// Counters of the filter. Envoy shows them with the prefix `wasmcustom.`.
import { defineCounter } from './host'

export let metricRequests: i32 = 0
export let metricMasked: i32 = 0
export let metricRejected: i32 = 0
export let metricLimited: i32 = 0
export let metricFailed: i32 = 0
export let metricInput: i32 = 0
export let metricOutput: i32 = 0

export function defineMetrics(): void {
  metricRequests = defineCounter('sluice_requests_total')
  metricMasked = defineCounter('sluice_masked_total')
  metricRejected = defineCounter('sluice_rejected_total')
  metricLimited = defineCounter('sluice_limited_total')
  metricFailed = defineCounter('sluice_failed_total')
  metricInput = defineCounter('sluice_input_tokens_total')
  metricOutput = defineCounter('sluice_output_tokens_total')
}
