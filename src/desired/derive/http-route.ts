/** HTTPRoute. */
import type { Stage } from '../graph.ts'
import { type CheckRegex, viewRule } from './http-rule.ts'
import { deriveRequestRoute } from './request-route.ts'

export function httpRouteStage(checkRegex: CheckRegex): Stage {
  return {
    name: 'http-route',
    kinds: ['HTTPRoute'],
    derive: (self, read) =>
      deriveRequestRoute<'HTTPRoute'>(self, read, ({ rules = [{}] }, from) =>
        rules.map((rule, index) => viewRule(rule, index, from, read, checkRegex)),
      ),
  }
}
