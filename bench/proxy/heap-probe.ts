/**
 * Loaded into a measured gateway (`node --import`). In each worker thread, it answers connections to a socket
 * in the folder `SLUICE_BENCH_PROBE`: a connection begins a measurement, and when its other side ends, the
 * answer is the number of bytes that the thread has allocated on its heap meanwhile.
 */
import { createServer } from 'node:net'
import { join } from 'node:path'
import { GCProfiler, getHeapStatistics } from 'node:v8'
import { isMainThread } from 'node:worker_threads'

/** The socket of the only worker. */
export const socketOf = (folder: string): string => join(folder, 'probe.sock')

/** Begins a measurement; the returned function ends it. */
function measureAllocation(): () => number {
  const profiler = new GCProfiler()
  profiler.start()
  let used = getHeapStatistics().used_heap_size
  return () => {
    const end = getHeapStatistics().used_heap_size
    let allocated = 0
    for (const { beforeGC, afterGC } of profiler.stop()?.statistics ?? []) {
      allocated += beforeGC.heapStatistics.usedHeapSize - used
      used = afterGC.heapStatistics.usedHeapSize
    }
    return allocated + end - used
  }
}

const folder = process.env.SLUICE_BENCH_PROBE
if (!isMainThread && folder !== undefined) {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const end = measureAllocation()
    socket.on('error', () => socket.destroy())
    socket.resume().once('end', () => socket.end(`${end()}`))
  })
  server.listen(socketOf(folder)).unref()
}
