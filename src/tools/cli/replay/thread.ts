/** Entry point of a thread that replays one segment of a log. */
import { parentPort, workerData } from 'node:worker_threads'
import { regexProblem } from '../../../control/plane/api-binding.ts'
import { openLogOf } from '../recording/recording.ts'
import { replaySegment, type ThreadTask } from './segment.ts'

const { at, ...task } = workerData as ThreadTask
const log = await openLogOf(at)
try {
  parentPort?.postMessage(await replaySegment(log, task, { checkRegex: regexProblem }))
} finally {
  await log.close()
}
