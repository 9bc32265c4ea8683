/** Stops calls to targets whose calls fail, with the health of an endpoint that stands for the whole target. */

import { now, plainAddress, UpstreamEndpoint } from '../../../../proxy/upstream/endpoint.ts'
import type { CallsConfig } from '../../policy/calls-config.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import { TargetMemory } from '../target/targets.ts'

type Breaker = NonNullable<CallsConfig['breaker']>

const health = new TargetMemory(() => new UpstreamEndpoint(plainAddress('target', 0)))

/** Whether the target gets no calls now. */
export const isOpen = (entry: McpTargetEntry): boolean => health.of(entry).isEjected(now)

/** Counts a call. Returns whether the target gets no more calls. */
export const recordCall = (
  entry: McpTargetEntry,
  isAnswered: boolean,
  { consecutiveFailures, durationMs }: Breaker,
): boolean => health.of(entry).judge(isAnswered, 0, { durationMs, consecutiveFailures }, now)
