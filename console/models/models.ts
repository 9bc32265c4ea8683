import { type Sample, sumBy } from '../source/prometheus.ts'
import { costsBy, costText, usdFormat } from './cost.ts'

type Rows = readonly (readonly (string | number)[])[]

interface ModelUsage {
  readonly usage: Rows
  readonly spend: Rows
  readonly ejected: Rows
  readonly guards: Rows
}

const modelLabels = ['route', 'gen_ai_request_model', 'gen_ai_provider_name']
const cacheRequests = 'sluice_model_cache_requests_total'
const providerLabels = ['backend', 'provider', 'reason']

/** The use of each model by each route; the most requests first. */
function modelUse(samples: readonly Sample[]): Rows {
  const tokens = new Map(
    sumBy(samples, 'sluice_gen_ai_client_token_usage_sum', [
      ...modelLabels,
      'gen_ai_token_type',
    ]).map(({ labels, value }) => [JSON.stringify(labels), value]),
  )
  const costs = costsBy(samples, modelLabels)
  const isHit = ({ name, labels }: Sample) => name === cacheRequests && labels.result === 'hit'
  const hitsBy = new Map(
    sumBy(samples.filter(isHit), cacheRequests, modelLabels).map(({ labels, value }) => [
      JSON.stringify(labels),
      value,
    ]),
  )
  return sumBy(samples, 'sluice_gen_ai_client_operation_duration_count', modelLabels).map(
    ({ labels, value }) => {
      const tokensOf = (type: string) => tokens.get(JSON.stringify([...labels, type])) ?? 0
      const cost = costText(costs.get(JSON.stringify(labels)))
      const hits = hitsBy.get(JSON.stringify(labels)) ?? 0
      return [...labels, value, tokensOf('input'), tokensOf('output'), cost, hits]
    },
  )
}

export function modelUsage(samples: readonly Sample[]): ModelUsage {
  const ejectedNow = new Map(
    sumBy(samples, 'sluice_model_provider_ejected', providerLabels).map(({ labels, value }) => [
      JSON.stringify(labels),
      value,
    ]),
  )
  return {
    usage: modelUse(samples),
    spend: spendRows(samples),
    ejected: sumBy(samples, 'sluice_model_provider_ejections_total', providerLabels).map(
      ({ labels, value }) => [...labels, ejectedNow.get(JSON.stringify(labels)) ?? 0, value],
    ),
    guards: sumBy(samples, 'sluice_guardrail_checks_total', ['phase', 'guard', 'action']).map(
      ({ labels, value }) => [...labels, value],
    ),
  }
}

const identityLabels = ['dimension', 'value']

/** Who the requests belong to, and what they have cost. */
function spendRows(samples: readonly Sample[]): Rows {
  const sumsOf = (what: string) =>
    sumBy(samples, `sluice_identity_model_${what}_total`, identityLabels)
  const byKey = (what: string) =>
    new Map(sumsOf(what).map(({ labels, value }) => [JSON.stringify(labels), value]))
  const [tokens, costs] = [byKey('tokens'), byKey('cost_usd')]
  return sumsOf('requests').map(({ labels, value }) => {
    const key = JSON.stringify(labels)
    const usd = costs.get(key)
    return [...labels, value, tokens.get(key) ?? 0, usd === undefined ? '' : usdFormat(usd)]
  })
}
