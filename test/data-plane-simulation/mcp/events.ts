/** A strict reader of event streams, written apart from the gateway's, and their writer. */

export interface StreamEvent {
  readonly id: string | undefined
  readonly data: string | undefined
  readonly retryMs: number | undefined
}

export class EventReader {
  #rest = ''

  /** Returns the events that are complete. Comments are none. @throws Error */
  push(text: string): StreamEvent[] {
    this.#rest += text
    const blocks = this.#rest.split('\n\n')
    this.#rest = blocks.pop() ?? ''
    return blocks.flatMap((block) => readEvent(block) ?? [])
  }

  /** Whether a part of an event has arrived. */
  get hasPart(): boolean {
    return this.#rest !== ''
  }
}

function readEvent(block: string): StreamEvent | undefined {
  const fields = new Map<string, string>()
  for (const line of block.split('\n')) {
    if (line.startsWith(':')) continue
    const [, name, value] = /^(id|event|data|retry): ?(.*)$/.exec(line) ?? []
    if (name === undefined || value === undefined) throw new Error(`the line ${line} of an event`)
    if (name !== 'data' && fields.has(name)) throw new Error(`two fields ${name} of an event`)
    const before = fields.get(name)
    fields.set(name, before === undefined ? value : `${before}\n${value}`)
  }
  if (fields.size === 0) return undefined
  const retry = fields.get('retry')
  return {
    id: fields.get('id'),
    data: fields.get('data'),
    retryMs: retry === undefined ? undefined : Number(retry),
  }
}

export function eventText({ id, data, retryMs }: Partial<StreamEvent>): string {
  const lines: string[] = []
  if (id !== undefined) lines.push(`id: ${id}`)
  if (retryMs !== undefined) lines.push(`retry: ${retryMs}`)
  if (data !== undefined) lines.push(`data: ${data}`)
  return `${lines.join('\n')}\n\n`
}
