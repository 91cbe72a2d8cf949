# What the reporters of Ruby's test tools share: a report of one JSON object a line.
require 'json'

class AgentRunnerReport
  DIR = File.expand_path('../..', __FILE__) # Ruby 2 has no `dirname` of two levels.
  lib = ENV['RUBYLIB'].to_s.split(File::PATH_SEPARATOR)
  lib.reject! { |folder| folder.start_with?("#{DIR}/") }
  lib.empty? ? ENV.delete('RUBYLIB') : ENV['RUBYLIB'] = lib.join(File::PATH_SEPARATOR)
  ROOT = Dir.pwd

  def self.utf8(text)
    text.to_s.dup.force_encoding('UTF-8').scrub('?')
  end

  def self.below(file)
    file.to_s.start_with?("#{ROOT}/") ? file[(ROOT.size + 1)..] : file.to_s
  end

  def initialize(tool)
    @tool, @pid = tool, Process.pid
    # `rand` would take a number of those that a suite draws by its seed.
    stamp = format('%020d-%d-%s', (Time.now.to_f * 1_000_000).to_i, @pid, Random.urandom(5).unpack1('H*'))
    @file = File.open(File.join(DIR, "#{tool}-#{stamp}.jsonl"), File::WRONLY | File::CREAT | File::EXCL, 0o644)
  end

  def write(event)
    return unless Process.pid == @pid

    event = event.map { |key, value| [key, value.is_a?(String) ? AgentRunnerReport.utf8(value) : value] }.to_h
    @file.syswrite(JSON.generate(event) + "\n")
  rescue StandardError
    nil
  end

  def name(klass, name)
    "#{AgentRunnerReport.utf8(klass)}##{AgentRunnerReport.utf8(name)}"
  end

  def begun
    write({ k: 'start', tool: @tool, cwd: ROOT })
  end

  def test(name, outcome, file, line, said, backtrace)
    place = Array(backtrace).find { |frame| file && frame.to_s.start_with?("#{File.expand_path(file)}:", "#{file}:") }
    at = place ? "\n    at #{File.basename(place[/\A.*?:\d+/])}" : ''
    write({ k: 'test', n: name, o: outcome, f: AgentRunnerReport.below(file), l: line,
            m: said ? AgentRunnerReport.utf8(said)[0, 1900] + at : '' })
  end
end
