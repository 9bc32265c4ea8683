export { openEmbeddedLog, readEmbeddedLog } from './embedded.ts'
export { maxEventBytes } from './encode.ts'
export {
  type AppendProblem,
  beginning,
  type EventLog,
  LogError,
  type LogErrorCode,
  type Position,
  type Recorded,
  type Snapshot,
} from './log.ts'
export { MemoryLog } from './memory.ts'
export { clusterName, subjectOf } from './subjects.ts'
