/** A command of the command line that the page of a console may run. */
import { type CommandResult, type Output, printResult } from '../shared/output.ts'

/** Where the log and the records of the console are. */
export interface CommandPlace {
  readonly logFile?: string
  readonly nats?: string
  readonly recordDir?: string
  /** Stats address of the proxy in this process. */
  readonly stats?: string
}

export interface ConsoleCommand {
  /** Options that the page may set, and the form of their values. */
  readonly takes: Readonly<Record<string, 'text' | 'texts' | 'flag'>>
  /** Runs the command and returns its exit code. `file` has the manifests that the page sent. */
  run(options: never, place: CommandPlace, output: Output): Promise<number>
}

/** Commands return an answer, which is printed as JSON. */
export const printed = async (result: Promise<CommandResult>, output: Output): Promise<number> =>
  printResult(await result, 'json', output)

export const log = ({ logFile, nats }: CommandPlace) => ({ logFile, nats })
