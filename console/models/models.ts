import { type Sample, sumBy } from '../source/prometheus.ts'

type Rows = readonly (readonly (string | number)[])[]

interface ModelUsage {
  readonly usage: Rows
  readonly ejected: Rows
  readonly guards: Rows
}

const modelLabels = ['route', 'gen_ai_request_model', 'gen_ai_provider_name']
const providerLabels = ['backend', 'provider', 'reason']

export function modelUsage(samples: readonly Sample[]): ModelUsage {
  const tokens = new Map(
    sumBy(samples, 'sluice_gen_ai_client_token_usage_sum', [
      ...modelLabels,
      'gen_ai_token_type',
    ]).map(({ labels, value }) => [JSON.stringify(labels), value]),
  )
  const tokensOf = (labels: readonly string[], type: string) =>
    tokens.get(JSON.stringify([...labels, type])) ?? 0
  const ejectedNow = new Map(
    sumBy(samples, 'sluice_model_provider_ejected', providerLabels).map(({ labels, value }) => [
      JSON.stringify(labels),
      value,
    ]),
  )
  return {
    usage: sumBy(samples, 'sluice_gen_ai_client_operation_duration_count', modelLabels).map(
      ({ labels, value }) => [
        ...labels,
        value,
        tokensOf(labels, 'input'),
        tokensOf(labels, 'output'),
      ],
    ),
    ejected: sumBy(samples, 'sluice_model_provider_ejections_total', providerLabels).map(
      ({ labels, value }) => [...labels, ejectedNow.get(JSON.stringify(labels)) ?? 0, value],
    ),
    guards: sumBy(samples, 'sluice_guardrail_checks_total', ['phase', 'guard', 'action']).map(
      ({ labels, value }) => [...labels, value],
    ),
  }
}
