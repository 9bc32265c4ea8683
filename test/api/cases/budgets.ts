/** Cases of the rules of GatewayBudget. */
import { accepted, type CaseGroup, place, refused } from './case.ts'

const gateway = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'edge' }
const spec = place('GatewayBudget', 'spec')
const budget = (unit: string, amount: string, more: object = {}) => ({
  targetRefs: [gateway],
  limit: { unit, amount },
  window: { unit: 'Day' },
  ...more,
})
const priced = (unpricedAmount: string) => ({ unpriced: 'CountAs', unpricedAmount })
const failingOpen = (failOpenAmount: string) => ({ onStoreLost: 'FailOpen', failOpenAmount })
const overriding = (amount: string) => ({
  each: 'apiKey.team',
  overrides: [
    { value: 'a', amount: '1' },
    { value: 'b', amount },
  ],
})

const whole = 'amounts of Tokens and Requests must be whole numbers'
const unpricedRule = 'unpricedAmount must be set if and only if unpriced is CountAs'
const failOpenRule = 'failOpenAmount must be set if and only if onStoreLost is FailOpen'

export const budgetCases: CaseGroup = {
  id: 'rules of GatewayBudget',
  cases: [
    accepted(
      spec,
      'with parts of USD',
      budget('USD', '1.5', { ...priced('0.5'), ...failingOpen('0.5'), ...overriding('0.5') }),
    ),
    accepted(
      spec,
      'with whole tokens',
      budget('Tokens', '15', { ...priced('5'), ...failingOpen('5'), ...overriding('5') }),
    ),
    refused(spec, 'with parts of tokens', budget('Tokens', '1.5'), '', whole),
    refused(
      spec,
      'with an override in parts of requests',
      budget('Requests', '1', overriding('0.5')),
      '',
      whole,
    ),
    refused(
      spec,
      'with parts of tokens for unpriced requests',
      budget('Tokens', '1', priced('0.5')),
      '',
      whole,
    ),
    refused(
      spec,
      'with parts of tokens while the ledger is lost',
      budget('Tokens', '1', failingOpen('0.5')),
      '',
      whole,
    ),
    refused(
      spec,
      'with overrides and without each',
      budget('USD', '1', { overrides: [{ value: 'a', amount: '1' }] }),
      '',
      'overrides need each',
    ),
    refused(
      spec,
      'with unpricedAmount and without CountAs',
      budget('USD', '1', { unpricedAmount: '1' }),
      '',
      unpricedRule,
    ),
    refused(
      spec,
      'with CountAs and without unpricedAmount',
      budget('USD', '1', { unpriced: 'CountAs' }),
      '',
      unpricedRule,
    ),
    refused(
      spec,
      'with failOpenAmount and without FailOpen',
      budget('USD', '1', { failOpenAmount: '1' }),
      '',
      failOpenRule,
    ),
    refused(
      spec,
      'with FailOpen and without failOpenAmount',
      budget('USD', '1', { onStoreLost: 'FailOpen' }),
      '',
      failOpenRule,
    ),
  ],
}
