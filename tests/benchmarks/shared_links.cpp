// What SimGrid makes of a collective over links that are shared fairly: the peer of test_shared_links.py.
//
//   g++ -O2 -o shared_links shared_links.cpp -lsimgrid
//   shared_links NETWORK {ring|halving-doubling} BYTES {eager|rendezvous}
//
// NETWORK: how many workers and links; each link's bandwidth and latency; then, for each pair that sends to the
// other, both and the links between them. Prints the time in seconds. SimGrid's plain model: a transfer waits the
// latency of its route, then moves at its max-min fair rate; no factors, no windows, no cross traffic.
#include <cstdio>
#include <fstream>
#include <simgrid/s4u.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

static std::vector<std::string> settings = {
    "network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:0", "network/weight-S:0",
    "network/latency-factor:1", "network/bandwidth-factor:1", "surf/precision:1e-15", "contexts/stack-size:64",
};

static sg4::Mailbox* box(int from, int to) {
  return sg4::Mailbox::by_name(std::to_string(from) + ">" + std::to_string(to));
}

struct Step { int to, from; double bytes; };

static std::vector<Step> steps_of(const std::string& algorithm, int me, int n, double bytes) {
  std::vector<Step> steps;
  if (algorithm == "ring") {
    for (int step = 0; step < 2 * (n - 1); step++)
      steps.push_back({(me + 1) % n, (me + n - 1) % n, bytes / n});
    return steps;
  }
  for (int far = n / 2; far; far /= 2)
    steps.push_back({me ^ far, me ^ far, bytes * far / n});
  for (int far = 1; far < n; far *= 2)
    steps.push_back({me ^ far, me ^ far, bytes * far / n});
  return steps;
}

static void worker(int me, const std::vector<Step>& steps, bool eager) {
  static char token;
  for (const Step& step : steps) {
    sg4::Mailbox* out = box(me, step.to);
    sg4::CommPtr sent;
    if (eager)
      out->put_init(&token, static_cast<uint64_t>(step.bytes))->detach();
    else
      sent = out->put_async(&token, static_cast<uint64_t>(step.bytes));
    box(step.from, me)->get<char>();
    if (sent)
      sent->wait();
  }
}

int main(int argc, char** argv) {
  sg4::Engine engine(&argc, argv);
  for (const auto& setting : settings)
    sg4::Engine::set_config(setting);
  std::ifstream file(argv[1]);
  int n, n_links;
  file >> n >> n_links;
  auto* zone = sg4::create_full_zone("network");
  std::vector<sg4::Host*> hosts;
  for (int i = 0; i < n; i++)
    hosts.push_back(zone->create_host(std::to_string(i), 1e9));
  std::vector<sg4::LinkInRoute> links;
  for (int i = 0; i < n_links; i++) {
    double bandwidth, latency;
    file >> bandwidth >> latency;
    links.emplace_back(zone->create_link("l" + std::to_string(i), bandwidth)->set_latency(latency)->seal());
  }
  int from, to, length, link;
  while (file >> from >> to >> length) {
    std::vector<sg4::LinkInRoute> route;
    for (int i = 0; i < length && file >> link; i++)
      route.push_back(links[link]);
    zone->add_route(hosts[from]->get_netpoint(), hosts[to]->get_netpoint(), nullptr, nullptr, route, false);
  }
  zone->seal();
  const std::string algorithm = argv[2];
  const bool eager = std::string(argv[4]) == "eager";
  for (int i = 0; i < n; i++) {
    auto actor = sg4::Actor::create("w" + std::to_string(i), hosts[i], worker, i,
                                    steps_of(algorithm, i, n, std::stod(argv[3])), eager);
    for (const Step& step : steps_of(algorithm, i, n, 1))
      if (eager)
        box(step.from, i)->set_receiver(actor);  // so that what is sent to it starts at once
  }
  engine.run();
  std::printf("%.17g\n", sg4::Engine::get_clock());
}
