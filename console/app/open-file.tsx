import { openFile } from '../state/start.ts'
import { log } from '../state/worker-client.ts'

/** Lets the reader choose an export. */
export function OpenFile({ isShort = false }: { isShort?: boolean }) {
  const input = (
    <label class="button">
      Open a log
      <input
        type="file"
        accept=".jsonl,.json,.gz,.ndjson"
        onChange={({ currentTarget }) => {
          const file = currentTarget.files?.[0]
          if (file !== undefined) openFile(file)
          currentTarget.value = ''
        }}
      />
    </label>
  )
  if (isShort) return input
  return (
    <section class="card open">
      <h1>Open an exported log</h1>
      <p>Drop a file here, plain or gzip. It is read in this page; nothing is uploaded.</p>
      {input}
      <p class="quiet">Write an export with:</p>
      <pre>
        sluice log --log-file events.db -o json &gt; events.jsonl{'\n'}
        sluice log --nats nats://HOST:4222 -o json | gzip &gt; events.jsonl.gz
      </pre>
      {log.value.state === 'failed' && <p class="quiet">The last file could not be read.</p>}
    </section>
  )
}
