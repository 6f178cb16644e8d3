/** Says what goes on: it takes long. */
export function progressOf(benchmark: string): (what: string) => void {
  return (what) => {
    process.stderr.write(`bench ${benchmark}: ${what}\n`);
  };
}
