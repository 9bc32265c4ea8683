/** Entry point of a thread that replays one segment of a log. */
import { parentPort, workerData } from 'node:worker_threads'
import { regexProblem } from '../../../control/plane/api-binding.ts'
import { openLogOf } from '../recording/recording.ts'
import { replaySegment, type ThreadMessage, type ThreadTask } from './segment.ts'

const { at, ...task } = workerData as ThreadTask
const log = await openLogOf(at)
try {
  const derivation = { checkRegex: regexProblem }
  const onRead = (read: number) => parentPort?.postMessage({ read } satisfies ThreadMessage)
  const result = await replaySegment(log, task, derivation, onRead)
  parentPort?.postMessage({ result } satisfies ThreadMessage)
} finally {
  await log.close()
}
