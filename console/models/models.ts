import { costOf, type PriceList, type TokenUse } from '../../src/past/prices/price-list.ts'
import { type Sample, sumBy } from '../source/prometheus.ts'

type Rows = readonly (readonly (string | number)[])[]

interface ModelUsage {
  readonly usage: Rows
  readonly ejected: Rows
  readonly guards: Rows
}

/** What the requests of a route to a model used since the proxy started. */
interface RouteUse extends TokenUse {
  readonly route: string
  readonly requests: number
}

const modelLabels = ['route', 'gen_ai_request_model', 'gen_ai_provider_name']
const providerLabels = ['backend', 'provider', 'reason']

/** The use of each model by each route; the most requests first. */
function modelUse(samples: readonly Sample[]): RouteUse[] {
  const tokens = new Map(
    sumBy(samples, 'sluice_gen_ai_client_token_usage_sum', [
      ...modelLabels,
      'gen_ai_token_type',
    ]).map(({ labels, value }) => [JSON.stringify(labels), value]),
  )
  return sumBy(samples, 'sluice_gen_ai_client_operation_duration_count', modelLabels).map(
    ({ labels, value }) => {
      const [route = '', model = '', provider = ''] = labels
      const tokensOf = (type: string) => tokens.get(JSON.stringify([...labels, type])) ?? 0
      return {
        route,
        model,
        provider,
        requests: value,
        input: tokensOf('input'),
        output: tokensOf('output'),
        cacheRead: tokensOf('input_cache_read'),
        cacheWrite: tokensOf('input_cache_write'),
      }
    },
  )
}

/** The cost of what has a price, and whether anything has none. */
export function totalCost(samples: readonly Sample[], prices: PriceList) {
  const costs = modelUse(samples).map((use) => costOf(prices, use))
  return {
    cost: costs.reduce<number>((sum, cost = 0) => sum + cost, 0),
    isPartial: costs.includes(undefined),
  }
}

/** With prices, each row of `usage` ends with its cost, which `money` formats. */
export function modelUsage(
  samples: readonly Sample[],
  prices?: PriceList,
  money: (amount: number) => string = String,
): ModelUsage {
  const ejectedNow = new Map(
    sumBy(samples, 'sluice_model_provider_ejected', providerLabels).map(({ labels, value }) => [
      JSON.stringify(labels),
      value,
    ]),
  )
  return {
    usage: modelUse(samples).map((use) => {
      const { route, model, provider, requests, input, output } = use
      const counts = [route, model, provider, requests, input, output]
      if (prices === undefined) return counts
      const cost = costOf(prices, use)
      return [...counts, cost === undefined ? 'no price' : money(cost)]
    }),
    ejected: sumBy(samples, 'sluice_model_provider_ejections_total', providerLabels).map(
      ({ labels, value }) => [...labels, ejectedNow.get(JSON.stringify(labels)) ?? 0, value],
    ),
    guards: sumBy(samples, 'sluice_guardrail_checks_total', ['phase', 'guard', 'action']).map(
      ({ labels, value }) => [...labels, value],
    ),
  }
}
