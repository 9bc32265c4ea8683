import { expect, it } from 'vitest'
import { reservedLabels } from '../../policies/metrics/index.ts'
import { metricDefinitions } from './metric-definitions.ts'

it('policies cannot add a label that a metric of requests already has', () => {
  const ofRequests = Object.values(metricDefinitions)
    .map(({ labels }): readonly string[] => labels)
    .filter((labels) => labels.includes('route_rule'))
  expect([...reservedLabels].sort()).toEqual([...new Set([...ofRequests.flat(), 'le'])].sort())
})
