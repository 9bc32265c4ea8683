export { joinEmbeddedLog, MemoryLog, openEmbeddedLog, readEmbeddedLog } from './embedded.ts'
export { noteDamage } from './embedded-file.ts'
export { maxEventBytes } from './encode.ts'
export {
  type AppendProblem,
  beginning,
  type EventLog,
  LogError,
  type LogErrorCode,
  type LogSnapshot,
  type NewSnapshot,
  type Position,
  type Recorded,
  type SnapshotInfo,
} from './log.ts'
export { newEvent } from './new-event.ts'
export type { OverflowListener } from './overflow.ts'
export { subjectOf } from './subjects.ts'
